"""The endings of files. This loads nothing, so that the completion of the command line is quick."""

from __future__ import annotations

TEXT = (".yaml", ".yml", ".json")
ARRAYS = (".npz",)
GAMBIT = (".nfg",)
TABLES = (".csv", ".parquet")
PROGRAMS = (".prism", ".nm", ".pm", ".jani")
MODELS = (*PROGRAMS, ".drn", ".umb", ".tra")
SOLUTIONS = (".ace",)
C_HEADER = (".h",)
PYTHON_MODULE = (".py",)
PAGES = (".html", ".htm")
READABLE = (*PAGES, ".txt", ".md", ".tex", ".pdf", ".png", ".svg", ".ipynb", ".log", ".xlsx")
"""Those that promise something to read or to look at, which no archive is."""

GAMES = [*TEXT, *ARRAYS, *GAMBIT, *TABLES, *MODELS, *SOLUTIONS]
"""Those of files from which a game can be read; `files.formats.register` adds to them."""
