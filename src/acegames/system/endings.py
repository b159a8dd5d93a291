"""The endings of files. This loads nothing, so that the completion of the command line is quick."""

from __future__ import annotations

from pathlib import Path

TEXT = (".yaml", ".yml", ".json")
ARRAYS = (".npz",)
GAMBIT = (".nfg",)
TABLES = (".csv", ".parquet")
PROGRAMS = (".prism", ".nm", ".pm", ".jani")
MODELS = (*PROGRAMS, ".drn", ".umb", ".tra")
REWARDS_OF_STATES, REWARDS_OF_TRANSITIONS = (".srew", ".rews"), (".trew", ".rewt")
BESIDE_TRANSITIONS = (".lab", ".sta", *REWARDS_OF_STATES, *REWARDS_OF_TRANSITIONS)
SOLUTIONS = (".ace",)
C_HEADER = (".h",)
PAGES = (".html", ".htm")
READABLE = (*PAGES, ".txt", ".md", ".tex", ".pdf", ".png", ".svg", ".ipynb", ".py", ".log", ".xlsx")
"""Those that promise something to read or to look at, which no archive is."""

GAMES = [*TEXT, *ARRAYS, *GAMBIT, *TABLES, *MODELS, *SOLUTIONS]
"""Those of files from which a game can be read; `files.formats.register` adds to them."""


def transitions_instead(path: Path) -> str:
    """Says which file to give instead of one beside a model; "" for files of other kinds."""
    if path.suffix.lower() not in BESIDE_TRANSITIONS:
        return ""
    named = [path.with_name(f"{stem}.tra") for stem in (path.stem, path.stem.rstrip("0123456789"))]
    model = next((file for file in named if file.is_file()), named[0])
    return f"it belongs to a model of PRISM, which is read by its transitions: give {model}"
