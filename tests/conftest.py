"""Compile the kernels once before anything is tested, so that no test meets the notice about it."""

import pytest

import acegames as ace


@pytest.fixture(scope="session", autouse=True)
def compiled_kernels():
    for concept in (ace.CCE(), ace.Nash()):
        ace.solve(ace.catalog.get("intersection"), concept)
