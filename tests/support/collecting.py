"""Nothing is built or solved while tests are collected: every worker collects all of them before it runs its share."""

from contextlib import contextmanager
from unittest import mock

from acegames.model import assemble


@contextmanager
def nothing_built():
    """Refuse every game, and so all that needs one: feasibility, solving, verifying."""

    def refused(*_, **__):
        raise AssertionError("a test file builds a game when it is imported: use a fixture, or a cached function")

    with mock.patch.object(assemble, "game_of", refused):
        yield
