"""The version of this package, for files that say what wrote them."""

__version__ = "0.1.0"
