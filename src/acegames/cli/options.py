"""Options and arguments that verbs share: completion in a shell, and words in, objects out."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

import acegames as ace
from acegames.cli.parameters import build as build_catalog_game
from acegames.cli.screen import warning_in_words, working
from acegames.concepts import CONCEPTS, OBJECTIVES, Concept, Correlated
from acegames.engines import Engine
from acegames.files.formats import endings, holds_game
from acegames.model.written import read_at, read_exact
from acegames.system import atomic


def games(incomplete: str) -> list[str]:
    """Catalog games and game files, and folders beside them. (A shell completes lone folders.)"""
    head = incomplete[: incomplete.rfind("/") + 1]
    try:
        found = sorted(path for path in Path(head or ".").iterdir() if f"{head}{path.name}".startswith(incomplete))
    except OSError:
        found = []
    names = game_names(incomplete) + [head + path.name for path in found if path.name.endswith(tuple(endings()))]
    folders = [f"{head}{path.name}/" for path in found if path.is_dir() and not path.name.startswith(".")]
    return names + folders if names else []


def _offered(words: Callable[[], Iterable[Any]]) -> Callable[[str], list[str]]:
    def offer(incomplete: str) -> list[str]:
        return [word for word in map(str.lower, map(str, words())) if word.startswith(incomplete)]

    return offer


game_names = _offered(lambda: ace.catalog.names())
concepts = _offered(lambda: CONCEPTS)
objectives = _offered(lambda: OBJECTIVES)


def concept_words() -> str:
    """Every concept with its meaning, for a help text: "ce (correlated), ... or nash"."""
    *others, last = (
        word if word == concept.words.adjective.lower() else f"{word} ({concept.words.adjective})"
        for word, concept in CONCEPTS.items()
    )
    return f"{', '.join(others)} or {last}"


Game = Annotated[
    str, Argument(metavar="GAME", help="A game or solution file, or the name of a catalog game.", autocompletion=games)
]
_PARAM = "Set a parameter of a catalog game, such as -p weights=3,1,1; may be given several times."
Param = Annotated[list[str] | None, Option("-p", "--param", metavar="NAME=VALUE", help=_PARAM)]
SolutionFile = Annotated[
    Path, Argument(metavar="FILE", help="A solution file (acegames solve GAME -o FILE), or a policy file with --game.")
]
_AGAINST = "Judge against this game instead of the one in FILE."
Against = Annotated[str | None, Option("--game", metavar="GAME", help=_AGAINST, autocompletion=games)]
_KIND = Option(help=f"{concept_words()}.", autocompletion=concepts)
_OBJECTIVE = Option(
    help="welfare, egalitarian, fair, none, a player, or weights such as 1,2.", autocompletion=objectives
)
Kind = Annotated[str, _KIND]
OptionalKind = Annotated[str | None, _KIND]
Objective = Annotated[str, _OBJECTIVE]
OptionalObjective = Annotated[str | None, _OBJECTIVE]
_EPSILON = "Round costs so that budgets are kept within this: a number, or one per constraint such as fuel=0.1,risk=0."
Epsilon = Annotated[str | None, Option(metavar="NUMBER", help=_EPSILON)]
Relative = Annotated[bool, Option("--relative", help="Epsilon is a share of each budget, not an amount.")]
Rounding = Annotated[str, Option(help="down (infeasible then is infeasible in truth) or up (no budget is exceeded).")]
_GAMMA = "Play forever, rewards and costs discounted by this per step; needs --epsilon."
Gamma = Annotated[str | None, Option(metavar="NUMBER", help=_GAMMA)]
CostGamma = Annotated[str | None, Option(metavar="NUMBER", help="Discount of costs, if another one.")]
_TOL = "Largest gain from a deviation that is accepted anywhere; by default 1e-8 of what is at stake."
Threads = Annotated[int | None, Option(min=1, help="Threads; all processors by default.")]
Tol = Annotated[float | None, Option(min=0, help=_TOL)]
Episodes = Annotated[int, Option(min=1, help="How many episodes to play.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object, for machines.")]
Quiet = Annotated[bool, Option("-q", "--quiet", help="Print nothing but errors; the exit code tells.")]


def output(text: str, metavar: str = "FILE") -> Any:
    """The option for the file that a verb writes."""
    return Option("-o", "--output", metavar=metavar, help=text)


ENGINES: dict[str, type[Any]] = {"local": ace.LocalEngine, "reference": ace.ReferenceEngine}


def read_game(name: str, param: list[str] | None = None) -> ace.MarkovGame:
    """A file if there is one of that name, else a catalog game, with parameters where given."""
    path = Path(name)
    if path.is_file():
        if param:
            raise ace.InvalidOption(f"-p {param[0]}: {name} is a file; only catalog games have parameters")
        with working("reading the game"), warning_in_words():
            return ace.load(name)
    if name in ace.catalog.names():
        return build_catalog_game(name, param or ())
    if path.is_dir():
        raise IsADirectoryError(f"{name}: a folder, not a file")
    if path.exists():
        raise ace.InvalidOption(f"{name}: not an ordinary file (a pipe or a device); save what comes from it to a file")
    if path.suffix or "/" in name:
        raise FileNotFoundError(f"{name}: no such file")
    raise ace.InvalidOption(
        f"{name}: neither a file nor a catalog game; `acegames catalog` lists {', '.join(ace.catalog.names())}"
    )


def read_policy(
    file: Path, against: str | None, param: list[str] | None = None
) -> tuple[ace.MarkovGame, ace.Policy, ace.Solution | None]:
    """Game, policy and solution of a file; with --game that game, the policy, no solution."""
    refuse_game(file)
    if against is None:
        refuse_param(param)
        solution = ace.Solution.load(file)
        return solution.game, solution.policy, solution
    return read_game(against, param), ace.Policy.load(file), None


def refuse_param(param: list[str] | None) -> None:
    """InvalidOption where parameters are given, but no game that could have them."""
    if param:
        raise ace.InvalidOption(f"-p {param[0]}: goes with --game and the name of a catalog game")


def refuse_game(file: Path) -> None:
    """InvalidOption where a game is given in place of a solution or a policy."""
    if holds_game(file) or (not file.exists() and str(file) in ace.catalog.names()):
        raise ace.InvalidOption(f"{file}: a game; give a solution of it: acegames solve {file} -o FILE")


def check_place(output: Path) -> None:
    """Refuse, before the work, a place where no file can be written after it."""
    atomic.check_place(output, "-o")


def read_concept(
    kind: str, objective: str, game: ace.MarkovGame, floor: float = 1.0, backend: str | None = None
) -> Concept:
    """The concept; its objective may be a word, the name of a player or weights."""
    name, (*others, last) = kind.lower(), CONCEPTS
    if name not in CONCEPTS:
        raise ace.InvalidOption(f"--concept {kind}: must be {', '.join(others)} or {last}")
    players = {str(p): p for p in game.players}
    chosen: Any = None if objective.lower() == "none" else players.get(objective, objective)
    if objective not in players and "," in objective:
        with contextlib.suppress(ValueError):  # what are no weights is refused with the list of objectives
            chosen = tuple(float(w) for w in objective.split(","))
    options: dict[str, Any] = {}
    if backend is not None:
        if CONCEPTS[name] is not ace.Nash:
            raise ace.InvalidOption(f"--backend {backend}: goes with --concept nash")
        options["backend"] = backend
    if issubclass(CONCEPTS[name], Correlated):
        options["floor"] = floor
    elif floor != 1.0:
        with_floor = " and ".join(word for word, known in CONCEPTS.items() if issubclass(known, Correlated))
        raise ace.InvalidOption(f"--floor {floor:g}: {name} has no floor, only {with_floor} do")
    return CONCEPTS[name](chosen, **options)


def read_engine(name: str, threads: int | None, memory: str | None) -> Engine:
    """The engine of that name; threads and memory are the local one's."""
    if name not in ENGINES:
        raise ace.InvalidOption(f"--engine {name}: must be {' or '.join(ENGINES)}")
    limits = {"threads": threads, "memory": None if memory is None else read_bytes(memory)}
    given = {option: limit for option, limit in limits.items() if limit is not None}
    if given and name != "local":
        raise ace.InvalidOption(f"--{next(iter(given))}: goes with --engine local, the {name} engine takes no limits")
    engine: Engine = ENGINES[name](**given)
    return engine


def read_bytes(text: str) -> int:
    """Bytes from 500MB, 4 GiB or a plain number."""
    match = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?)(I?)B?\s*", text.upper())
    if match is None:
        raise ace.InvalidOption(f"--memory {text}: must be a number of bytes such as 500MB or 4GiB")
    return int(float(match[1]) * (1024 if match[3] else 1000) ** " KMGT".index(match[2] or " "))


def read_epsilon(text: str | None, game: ace.MarkovGame) -> Any:
    """A number, or {constraint: number} from name=number,name=number."""
    if text is None:
        return None
    if "=" not in text:
        return _exact("--epsilon", text)
    labels = {str(c): c for c in game.constraints}
    pairs = [part.rpartition("=") for part in text.split(",")]
    if len({name.strip() for name, *_ in pairs}) < len(pairs):
        raise ace.InvalidOption(f"--epsilon {text}: a constraint is named twice")
    return {labels.get(name.strip(), name.strip()): _exact("--epsilon", value) for name, _, value in pairs}


def discounted(
    game: ace.MarkovGame, epsilon: str | None, gamma: str | None, cost_gamma: str | None
) -> tuple[ace.MarkovGame, Any]:
    """The game, cut short where it is played forever, and the epsilon for its costs."""
    small = read_epsilon(epsilon, game)
    if gamma is None:
        if cost_gamma is not None:
            raise ace.InvalidOption("--cost-gamma needs --gamma")
        return game, small
    if small is None or isinstance(small, dict):
        raise ace.InvalidOption("--gamma needs --epsilon with one number: what comes after the cut stays below it")
    rates = [None if r is None else _exact("--gamma", r) for r in (gamma, cost_gamma)]
    return ace.discount(game, rates[0], epsilon=small, cost_gamma=rates[1]), None  # it brings its own


def _exact(option: str, text: str) -> Any:
    return read_at(f"{option} {text}", read_exact, text, error=ace.InvalidOption)
