"""Old import paths keep working for one version, with a warning."""

from __future__ import annotations

import pytest


def test_tables_are_found_under_their_old_path():
    from acegames.adapters import tables as old
    from acegames.files import tables as new

    with pytest.warns(DeprecationWarning, match=r"acegames\.files\.tables"):
        assert old.write_game is new.write_game
    with pytest.warns(DeprecationWarning, match=r"acegames\.files\.tables"), pytest.raises(AttributeError):
        old.no_such_name  # noqa: B018
