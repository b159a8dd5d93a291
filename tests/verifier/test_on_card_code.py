"""The verifier's kernels as code for a GPU: compiled without one and without a driver, where `acegames[gpu]` is installed."""

from __future__ import annotations

import re

import pytest

import acegames as ace
from acegames.cli.bench import random_game
from acegames.system import cuda_code
from acegames.verifier.on_gpu import KERNELS
from emulated_gpu import EmulatedGPU, Recording
from gpu_code import CARD, resources

pytest.importorskip("numba_cuda")
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # numba-cuda's own
STACK = {"verify_judge": 2048}


@pytest.fixture(scope="module")
def given():
    """Every kernel, and what it is given."""
    card = Recording()
    game = random_game(3, 5, 9)
    ace.verify(game, ace.solve(game, ace.CE()).policy, engine=EmulatedGPU(smallest=0, card=card))
    return card.given


@pytest.mark.parametrize("name", KERNELS)
def test_nothing_is_fused(given, name):
    """Multiplications and additions are rounded one by one; registers, stack and arguments are within limits."""
    recipe, arguments = given[f"verify_{name}"]
    code = cuda_code.compile_ltoir(recipe, arguments, CARD)
    ptx = cuda_code.link(code, CARD, ptx=True).decode(errors="replace")
    assert ".entry" in ptx and ".target sm_90" in ptx
    assert not re.search(r"\bfma\.rn\.f64|\bmad\.f64", ptx)
    registers, stack = resources(code)
    assert registers <= 128 and stack <= STACK.get(recipe.name, 64)
    words = re.findall(r"\.param \.\w+ (?:\.\w+ )*\w+_param_\d+", ptx)
    assert 0 < 8 * len(words) <= 4096  # bytes that a kernel may be given


def test_a_key_for_each_kernel(given):
    """Changes of the verifier's sources and of what is compiled for give other files."""
    recipe, arguments = given["verify_judge"]
    usual = cuda_code._kept_in(recipe, arguments, CARD)
    assert usual is not None and usual != cuda_code._kept_in(recipe, arguments, (8, 0))
    assert usual != cuda_code._kept_in(*given["verify_gain"], CARD)
