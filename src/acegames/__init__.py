"""acegames: equilibria of Markov games with hard budgets, kept at every moment, almost surely.

    game (-> rounded costs, or infinite play cut short) -> feasibility -> solve -> policy -> verify
    / simulate

    >>> import acegames as ace
    >>> game = ace.catalog.get("intersection")
    >>> solution = ace.solve(game, ace.CE())
    >>> ace.verify(game, solution.policy, ace.CE()).ok
    True

A newcomer needs four names: `MarkovGame`, `solve`, `verify`, `simulate`. `front` lists them all.
Nothing is loaded before a name is used, so that the program `acegames` can see to Ctrl-C before
that.
"""

from typing import TYPE_CHECKING, Any

from acegames.version import __version__ as __version__

if TYPE_CHECKING:
    from acegames.front import *  # noqa: F403
    from acegames.front import __all__ as __all__
else:  # hidden from type checkers, so that they know which names there are

    def __getattr__(name: str) -> Any:
        """Load the public names, and with them the rooms that they are in."""
        import importlib

        front = importlib.import_module("acegames.front")
        globals().update({public: getattr(front, public) for public in ("__all__", *front.__all__)})
        if name in globals():
            return globals()[name]
        raise AttributeError(f"module 'acegames' has no attribute {name!r}")

    def __dir__() -> list[str]:
        public, package = set(__getattr__("__all__")), type(__getattr__("catalog"))
        return sorted(
            name for name, x in globals().items() if name in public or name.startswith("_") or isinstance(x, package)
        )
