"""Writes docs/reference/command-line.md from the program itself: `make commands`. A test compares the two."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import typer.main

import acegames.cli

PAGE = Path(__file__).parent / "reference" / "command-line.md"

HEAD = """# Command line

<!-- made by `make commands` from the program; edit the help texts in src/acegames/cli instead -->

{help} `acegames COMMAND --help` prints what is written here about a command.

A GAME is a game file, a solution file or the name of a [catalog game](python/catalog.md). Every command
takes `--json`, which prints one JSON object, and `--quiet`, which prints nothing but errors.

| command | what it does |
| --- | --- |
{commands}

Shells complete commands, options, catalog games and files after `acegames --install-completion`.

## Exit codes

| code | meaning |
| ---: | --- |
{codes}
"""

COMMAND = """
## acegames {name}

{help}

```text
{usage}
```

{table}
{example}"""


def page() -> str:
    """The whole page."""
    program: Any = typer.main.get_command(acegames.cli.app)
    shown = {name: command for name, command in program.commands.items() if not command.hidden}
    rows = [f"| [`{name}`](#acegames-{name}) | {first_sentence(command.help)} |" for name, command in shown.items()]
    codes = re.search(r"Exit codes: (.*?)\.(?:\n|$)", acegames.cli.__doc__ or "", flags=re.DOTALL)
    assert codes, "the docstring of acegames.cli lists the exit codes"
    meanings = [code.split(" ", 1) for code in " ".join(codes[1].split()).split(", ")]
    head = HEAD.format(
        help=program.help,
        commands="\n".join(rows),
        codes="\n".join(f"| {number} | {meaning} |" for number, meaning in meanings),
    )
    return head + "".join(section(name, command) for name, command in shown.items())


def section(name: str, command: Any) -> str:
    """One command: what it does, how it is called, its arguments and options, an example."""
    usage = " ".join(["acegames", name, *acegames.cli.usage(command)])
    rows = [f"| {written(p)} | {cell(p)} |" for p in command.params if not getattr(p, "hidden", False)]
    example = re.sub(r"^Example:\s*", "", command.epilog or "").strip()
    return COMMAND.format(
        name=name,
        help=command.help.strip(),
        usage=usage,
        table="\n".join(["| argument or option | meaning |", "| --- | --- |", *rows]),
        example=f"\n```sh\n{example}\n```\n" if example else "",
    )


def written(parameter: Any) -> str:
    """How an argument or option is written, each of its names as code."""
    value = str(parameter.metavar or parameter.name.upper())
    if not parameter.opts[0].startswith("-"):
        return f"`{value}`"
    *short, name = sorted(parameter.opts, key=len)
    if not getattr(parameter, "is_flag", False):
        name += f" {value}"
    names = ", ".join(f"`{x}`" for x in [*short, name])
    return " / ".join([names, *(f"`{x}`" for x in parameter.secondary_opts)])


def cell(parameter: Any) -> str:
    """What an argument or option means, and its default."""
    text = " ".join((parameter.help or "").split()).replace("|", "\\|")
    default = parameter.default
    if parameter.required and parameter.opts[0].startswith("-"):
        text += " Required."
    elif default is not None and not callable(default) and default != [] and not getattr(parameter, "is_flag", False):
        text += f" Default: `{default}`."
    elif parameter.secondary_opts and default is not None:
        text += f" Default: `{parameter.opts[0] if default else parameter.secondary_opts[0]}`."
    return text.strip()


def first_sentence(text: str) -> str:
    """The first sentence of a help text, for the list of commands."""
    return re.split(r"(?<=\.) ", " ".join(text.split()))[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page())
