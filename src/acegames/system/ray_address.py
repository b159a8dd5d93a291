"""Addresses of Ray clusters, looked at before anything is connected."""

from __future__ import annotations

from acegames.system.ray_connection import _checked


def check_address(address: str | None) -> None:
    """Refuse what is neither "auto", "HOST:PORT" nor None.

    Raises:
        InvalidOption: it is none of them, or an address of Ray Client.
    """
    _checked(address)
