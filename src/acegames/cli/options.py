"""Options and arguments that verbs share: their help, and words in, objects out.

What takes long to load is imported inside the functions: `game_options` says why.
"""

from __future__ import annotations

import contextlib
import difflib
import math
import os
import re
from collections.abc import Iterable
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli.game_options import NOTHING as NOTHING
from acegames.cli.game_options import GameOptions as GameOptions
from acegames.cli.game_options import Param as Param
from acegames.cli.game_options import concepts, games, objectives, offered, solutions
from acegames.cli.game_options import whole as whole
from acegames.cli.screen import counted, warning_in_words, working
from acegames.concepts import CONCEPTS, OBJECTIVES, Concept, Correlated
from acegames.errors import BadFile, InvalidOption, TooLarge
from acegames.system import atomic, limits
from acegames.system.machine import available_memory, bytes_said

if TYPE_CHECKING:
    from acegames.engines import Engine

ENGINES = ("local", "interpreted", "gpu", "ray", "reference")
JUDGES = ("local", "interpreted", "gpu", "ray")  # engines that verify
PROOF = b"acegames-proof "  # what a proof begins with
CHANGE = "Edit the game file, or change the game in Python: game.with_budget(...), game.with_horizon(...)"
SAMPLED = 3  # an estimate by sampling is right within this factor


def concept_words() -> str:
    """Return every concept with its meaning, for a help text: "ce (correlated), ... or nash"."""
    *others, last = (
        word if word == concept.words.adjective.lower() else f"{word} ({concept.words.adjective})"
        for word, concept in CONCEPTS.items()
    )
    return f"{', '.join(others)} or {last}"


Game = Annotated[
    str,
    Argument(
        metavar="GAME",
        help="A game or solution file, a model of PRISM or Storm, or the name of a catalog game.",
        autocompletion=games,
    ),
]
_SOLUTION = "A solution file (acegames solve GAME -o FILE), or a policy file (policy.save in Python) with --game."
SolutionFile = Annotated[Path, Argument(metavar="FILE", help=_SOLUTION, autocompletion=solutions)]
_AGAINST = "Use this game instead of the one in FILE; a policy file, which holds no game, needs it."
Against = Annotated[str | None, Option("--game", metavar="GAME", help=_AGAINST, autocompletion=games)]


def concept_option(text: str) -> Any:
    """Return the option for the kind of equilibrium."""
    return Option(metavar="CONCEPT", help=f"{text}: {concept_words()}.", autocompletion=concepts)


Kind = Annotated[
    str | None, concept_option("Kind of equilibrium, by default that of a solution file given as GAME, else cce")
]
_OBJECTIVE = (
    "Which equilibrium of each stage game is chosen, by default as in a solution file, else welfare: welfare (sum of "
    "values), egalitarian (lowest value), fair (smallest gap), none, a player, or weights such as 1,2."
)
Objective = Annotated[str | None, Option(metavar="OBJECTIVE", help=_OBJECTIVE, autocompletion=objectives)]
_EPSILON = (
    "Round costs, which makes high-precision costs solvable. No budget is exceeded by more than this: "
    "one number, or some such as fuel=0.1,risk=1, and 0 for the constraints that are left out."
)
Epsilon = Annotated[str | None, Option(metavar="NUMBER", help=_EPSILON)]
Relative = Annotated[bool, Option("--relative", help="Read --epsilon as a share of each budget, not as an amount.")]
_ROUNDING = (
    "With --epsilon: down (if no policy keeps the rounded budgets, none keeps the true ones) or "
    "up (no true budget is ever exceeded)."
)
Rounding = Annotated[str, Option(metavar="DIRECTION", help=_ROUNDING, autocompletion=offered(lambda: ("down", "up")))]
_GAMMA = "Play forever, with rewards and costs discounted by this factor per step; needs --epsilon."
Gamma = Annotated[str | None, Option(metavar="NUMBER", help=_GAMMA)]
_COST_GAMMA = "With --gamma: the discount factor of costs, by default the same."
CostGamma = Annotated[str | None, Option(metavar="NUMBER", help=_COST_GAMMA)]
_TOL = "Largest gain by a deviation that is accepted in any situation; by default 1e-8 of what is at stake there."
Tol = Annotated[float | None, Option(min=0, metavar="NUMBER", help=_TOL)]
Threads = Annotated[
    int | None, Option(parser=whole(1), metavar="N", help="Number of threads; by default all processors.")
]
_ADDRESS = "With --engine ray: the Ray cluster, as HOST:PORT of its head node; by default auto, the one that runs on this machine."
Address = Annotated[str | None, Option(metavar="ADDRESS", help=_ADDRESS, autocompletion=offered(lambda: ("auto",)))]
_MEMORY = "Refuse a game whose solve needs more memory than this, such as 4GB; by default the free memory."
Memory = Annotated[str | None, Option(metavar="SIZE", help=_MEMORY)]
_VALUES = "Keep the value of every situation. Without values the policy takes less memory and still plays and verifies."
Values = Annotated[bool, Option(help=_VALUES)]
Episodes = Annotated[int, Option(parser=whole(1), metavar="N", help="Number of episodes to play.")]
Json = Annotated[
    bool, Option("--json", help="Print one JSON object instead of text; docs/reference/json.md lists its fields.")
]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Print nothing but errors; the exit code says the rest.")]


def instead_of_part(words: list[str], *, takes_cost: bool) -> str:
    """Return what to type instead of an option for a part of a game, such as --budget, that is
    none.
    """
    budget = re.search(r"\n--budgets?[=\n](?!-)([^\n]+=[^\n]+)", "\n".join(["", *words]))
    if takes_cost and any(Path(word).suffix.lower() in limits.MODELS for word in words):
        said = budget[1] if budget else "NAME=BUDGET"
        return f"; of a model, --cost {said} bounds the total of a reward structure."
    return f", which is part of the game (-p sets it for a catalog game). {CHANGE}."


def output(text: str, metavar: str = "FILE") -> Any:
    """Return the option for the file that a verb writes."""
    return Option("-o", "--output", metavar=metavar, help=text)


def read_game(name: str, typed: GameOptions = NOTHING) -> ace.MarkovGame:
    """Return the game in a file of that name, else a catalog game, with its parameters."""
    path, param, option = Path(name), typed.param, typed.of_model()
    if path.is_file():
        options = {}
        if path.suffix.lower() in limits.MODELS:
            options = typed.options_of_model()
        elif (param or option) and (instead := limits.transitions_instead(path)):
            raise InvalidOption(f"{name}: {instead}")
        elif param or option:
            said, whose = (
                (f"-p {param[0]}", "catalog games and models") if param else (option, "models of PRISM and Storm")
            )
            raise InvalidOption(
                f"{said}: {name} is a file of another kind; only {whose} have such parameters. {CHANGE}"
            )
        with working("reading the game"), warning_in_words():
            return ace.load(name, **options)
    if option is not None and name in ace.catalog.names():
        raise InvalidOption(f"{option}: goes with a model of PRISM or Storm, {name} is a catalog game")
    if name in ace.catalog.names():
        from acegames.cli.game_options import build_catalog_game

        return build_catalog_game(name, typed.param or ())
    if path.is_dir():
        raise IsADirectoryError(f"{name}: a folder, not a file")
    if path.exists():
        raise InvalidOption(f"{name}: not an ordinary file (a pipe or a device); save what comes from it to a file")
    if path.suffix or "/" in name:
        raise FileNotFoundError(f"{name}: no such file{nearest(name, _games_beside(path))}")
    known = [*ace.catalog.names(), *_games_beside(path)]
    raise InvalidOption(
        f"{name}: neither a file nor a catalog game{nearest(name, known)}; `acegames catalog` lists the catalog games"
    )


def nearest(word: str, known: Iterable[str]) -> str:
    """Return " (did you mean ...?)" for a word that is nearly a known one; else nothing."""
    close = difflib.get_close_matches(word, list(known), n=1)
    return f" (did you mean {close[0]}?)" if close else ""


def _games_beside(path: Path) -> list[str]:
    """Return those that may hold a game."""
    return [name for name in _siblings(path) if Path(name).suffix.lower() in limits.GAMES]


def _siblings(path: Path) -> list[str]:
    """Return the files in the folder of a path, named as the path names it."""
    with contextlib.suppress(OSError):
        return [os.path.join(path.parent, x.name) if path.parent.name else x.name for x in os.scandir(path.parent)]
    return []


def read_policy(
    file: Path, against: str | None, typed: GameOptions = NOTHING
) -> tuple[ace.MarkovGame, Any, ace.Solution | None]:
    """Return game, policy and solution of a file; with --game that game, the policy and None.

    A file of `acegames payoffs` has a policy with memory, and no solution.
    """
    from acegames.files.promise_file import holds_promises

    if holds_promises(file):
        policy = ace.MemoryPolicy.load(file)
        if against is None:
            refuse_param(typed)
        return policy.game if against is None else read_game(against, typed), policy, None
    if against is None:
        refuse_param(typed)
        solution = read_solution(file)
        return solution.game, solution.policy, solution
    refuse_game(file)
    return read_game(against, typed), ace.Policy.load(file), None


def refuse_param(typed: GameOptions) -> None:
    """Raise InvalidOption where parameters are given, but no game that could have them."""
    if typed.param:
        raise InvalidOption(f"-p {typed.param[0]}: goes with --game and the name of a catalog game")
    if typed.of_model() is not None:
        raise InvalidOption(f"{typed.of_model()}: goes with --game and a model of PRISM or Storm")


def read_solution(file: Path) -> ace.Solution:
    """Return the solution in a file; of a policy file, InvalidOption that says how to give the
    game.
    """
    refuse_game(file)
    try:
        return ace.Solution.load(file)
    except BadFile:
        with contextlib.suppress(BadFile, MemoryError):
            ace.Policy.load(file)
            raise InvalidOption(f"{file}: holds a policy without its game; name the game: --game GAME") from None
        raise


def refuse_game(file: Path) -> None:
    """Raise InvalidOption where a game is given in place of a solution or a policy, or nothing."""
    from acegames.files.formats import holds_game

    if not file.exists() and str(file) not in ace.catalog.names():
        raise FileNotFoundError(f"{file}: no such file{nearest(str(file), _siblings(file))}")
    if file.is_file() and (exported := _exported(file)):
        raise InvalidOption(f"{file}: {exported}")
    if not file.exists() or holds_game(file):
        raise InvalidOption(f"{file}: a game; give a solution of it: acegames solve {file} -o FILE")


def _exported(file: Path) -> str | None:
    """Return what a file is that was made of a solution, and what to do; None for other files."""
    from acegames.files.formats import POLICY, format_of

    file_format = format_of(file)
    if file_format is not None and file_format.kind == POLICY:
        return f"{file_format.words}, not a solution or a policy file; give the solution that it was exported from"
    # A table of a game has its head in a file beside it (CSV).
    if file_format is not None and file_format.export_policy is not None and not Path(f"{file}.json").exists():
        return (
            "a table for other programs, not a policy file; give the solution that it was exported from, or a "
            "policy file, which policy.save(FILE) writes in Python (where acegames.files.tables.read_policy reads such a table); "
            f"if it holds a game, solve it: acegames solve {file} -o FILE"
        )
    with open(file, "rb") as begun:
        if begun.read(len(PROOF)) != PROOF:
            return None
    return (
        f"a proof, which the checker checks: python ace_check.py {file} "
        "(`acegames prove SOLUTION -o PROOF --checker ace_check.py` writes the checker)"
    )


def check_place(output: Path) -> None:
    """Refuse, before the work, a place where no file can be written after it."""
    atomic.check_place(output, "-o")


def read_concept(
    kind: str, objective: str, game: ace.MarkovGame, floor: float | None = None, backend: str | None = None
) -> Concept:
    """Return the concept; its objective may be a word, the name of a player or weights."""
    name, (*others, last) = kind.lower(), CONCEPTS
    if name not in CONCEPTS:
        raise InvalidOption(f"--concept {kind}: must be {', '.join(others)} or {last}{nearest(name, CONCEPTS)}")
    chosen = read_objective("--objective", objective, game)
    options: dict[str, Any] = {}
    if backend is not None:
        if CONCEPTS[name] is not ace.Nash:
            raise InvalidOption(f"--backend {backend}: goes with --concept nash")
        options["backend"] = backend
    if floor is not None:
        if not issubclass(CONCEPTS[name], Correlated):
            with_floor = " and ".join(word for word, known in CONCEPTS.items() if issubclass(known, Correlated))
            raise InvalidOption(f"--floor {floor:g}: {name} has no floor, only {with_floor} do")
        options["floor"] = floor
    return CONCEPTS[name](chosen, **options)


def wanted_concept(
    name: str,
    kind: str | None,
    objective: str | None,
    game: ace.MarkovGame,
    floor: float | None = None,
    backend: str | None = None,
) -> Concept:
    """Return the concept that is asked for; the rest is taken from the solution in a file."""
    stored: Concept | None = None
    if Path(name).is_file():
        with contextlib.suppress(BadFile):
            stored = ace.Solution.load(name).concept
    usual = next((word for word, known in CONCEPTS.items() if type(stored) is known), "cce")
    asked = read_concept(
        usual if kind is None else kind, "welfare" if objective is None else objective, game, floor, backend
    )
    said = {"objective": objective, "floor": floor, "backend": backend}
    like = ["objective"] if type(asked) is not type(stored) else [f.name for f in fields(asked)]
    return replace(asked, **{name: getattr(stored, name) for name in like if stored is not None and said[name] is None})


def read_objective(option: str, text: str, game: ace.MarkovGame, *more: str) -> Any:
    """Return a player of that name, else a word of `OBJECTIVES`, else weights.

    `more` are words that are read elsewhere.
    """
    players, words = {str(p): p for p in game.players}, {str(word).lower(): word for word in OBJECTIVES}
    if option != "--objective":  # where one equilibrium is asked for
        del words["none"]
    if text in players:
        return players[text]
    if text.lower() in words:
        return words[text.lower()]
    with contextlib.suppress(ValueError):
        weights = tuple(float(w) for w in text.split(","))
        if len(weights) == len(players) and all(map(math.isfinite, weights)):
            return weights
    words |= dict.fromkeys(more)
    raise InvalidOption(
        f"{option} {text}: must be {', '.join(words)}, a player ({', '.join(players)}) or "
        f"{counted(len(players), 'finite weight')}{' such as ' + ','.join('1' * len(players)) if len(players) < 5 else ''}"
        f"{nearest(text, [*words, *players])}"
    )


def read_engine(
    name: str, threads: int | None, memory: str | None, address: str | None, known: tuple[str, ...] = ENGINES
) -> Engine:
    """Return the engine of that name; limits are those of the local one or a GPU's host."""
    if name not in known:
        *others, last = known
        raise InvalidOption(f"--engine {name}: must be {', '.join(others)} or {last}{nearest(name, known)}")
    limits = {"threads": threads, "memory": None if memory is None else read_bytes("--memory", memory)}
    chosen: dict[str, Any] = {option: limit for option, limit in limits.items() if limit is not None}
    if address is None and name == "gpu":
        return ace.GPUEngine(host=ace.LocalEngine(**chosen))
    if name == "interpreted":
        name, chosen["compiled"] = "local", False
    elif chosen and name not in ("local", "gpu"):
        raise InvalidOption(f"--{next(iter(chosen))}: goes with --engine local, {NO_LIMITS[name]}")
    if address is not None and name != "ray":
        raise InvalidOption(f"--address {address}: goes with --engine ray")
    engines: dict[str, Any] = {"local": ace.LocalEngine, "reference": ace.ReferenceEngine, "ray": ace.RayEngine}
    engine: Engine = engines[name](**chosen, **({} if address is None else {"address": address}))
    return engine


NO_LIMITS = {
    "reference": "the reference engine takes no limits",
    "ray": "the limits of a cluster are those of its nodes (ray start --num-cpus, --object-store-memory)",
}
"""Why an engine takes neither --threads nor --memory."""


def read_bytes(option: str, text: str) -> int:
    """Return bytes from 500MB, 4 GiB or a plain number."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if match is None:
        raise InvalidOption(f"{option} {text}: must be a number of bytes such as 500MB or 4GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2] or " "))


def refuse_too_large(needs: ace.Estimate, memory: str | None, *, on_disk: bool = False) -> None:
    """Raise TooLarge where a solve needs more memory than --memory allows, or far more than is
    free.
    """
    said = too_large(needs, memory, on_disk=on_disk)
    if said is not None:
        raise TooLarge(said)


def too_large(needs: ace.Estimate, memory: str | None, *, on_disk: bool = False) -> str | None:
    """Return why a solve does not fit this machine, or what --memory allows; None where it may.

    An estimate by sampling may be too large; then a third of it must not fit. A number that is
    counted is refused by --memory alone: such a game is small enough to be looked at first.
    """
    if needs.counted and memory is None:
        return None
    allowed = available_memory() if memory is None else read_bytes("--memory", memory)
    needed = needs.memory - (needs.policy if on_disk else 0)
    if needed / (1 if needs.counted else SAMPLED) <= allowed:
        return None
    limit = f"{bytes_said(allowed)} is free" if memory is None else f"{memory} is allowed (--memory)"
    on_cluster = "" if memory is not None else ", and several machines can share it (--engine ray)"
    return (
        f"solving {needs.size} needs about {bytes_said(needed)} of memory, but only {limit}; "
        "coarser costs (--epsilon), smaller budgets, fewer constraints or a shorter horizon make it smaller, "
        f"a solve with --no-values or --checkpoint needs less, and --memory allows more{on_cluster}"
    )


def read_epsilon(text: str | None, game: ace.MarkovGame) -> Any:
    """Return a number, or {constraint: number} from name=number,name=number, 0 for the others."""
    from acegames.model.budgets import negated

    if text is None:
        return None
    if "=" not in text:
        return _exact("--epsilon", text)
    labels = {str(c): c for c in game.constraints}
    pairs = [part.rpartition("=") for part in text.split(",")]
    if len({name.strip() for name, *_ in pairs}) < len(pairs):
        raise InvalidOption(f"--epsilon {text}: a constraint is named twice")
    amounts = {labels.get(name.strip(), name.strip()): _exact("--epsilon", value) for name, _, value in pairs}
    named = {*amounts, *map(negated, amounts)}  # one serves both sides of `between`
    return amounts | {c: 0 for c in game.constraints if c not in named}


def discounted(
    game: ace.MarkovGame, epsilon: str | None, gamma: str | None, cost_gamma: str | None
) -> tuple[ace.MarkovGame, Any]:
    """Return the game, cut short where it is played forever, and the epsilon for its costs."""
    small = read_epsilon(epsilon, game)
    if gamma is None:
        if cost_gamma is not None:
            raise InvalidOption("--cost-gamma needs --gamma")
        return game, small
    if small is None or isinstance(small, dict):
        raise InvalidOption("--gamma needs --epsilon with one number: what comes after the cut stays below it")
    rates = [None if r is None else _exact("--gamma", r) for r in (gamma, cost_gamma)]
    return ace.discount(game, rates[0], epsilon=small, cost_gamma=rates[1]), None  # it brings its own


def _exact(option: str, text: str) -> Any:
    from acegames.model.checks import read_at
    from acegames.model.words import read_exact

    return read_at(f"{option} {text}", read_exact, text, error=InvalidOption)
