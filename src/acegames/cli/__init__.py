"""The command-line program. A GAME is a game or solution file, or the name of a catalog game.

Importing this loads neither numpy nor the solver, so that help and completion come at once.

Exit codes: 0 fine, 1 a check failed, 2 bad input, 3 infeasible, 4 no such equilibrium, 5 too large,
130 interrupted, 141 nobody reads on, 143 terminated.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import os
import shutil
import signal
import sys
from collections.abc import Callable, Collection, Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import acegames as ace
from acegames.cli import options as opt
from acegames.cli import verbs_files, verbs_safety, verbs_solving
from acegames.cli.game_options import unfolded
from acegames.cli.screen import Answer, err, escape, out, speaking, widen
from acegames.errors import AceError, Infeasible, InvalidOption, NoEquilibrium, TooLarge
from acegames.system.limits import MESSAGE

USAGE_ERROR: Any = typer.BadParameter.__base__  # of click, wherever this version of typer has it

EXIT_CODES: dict[type[Exception], int] = {Infeasible: 3, NoEquilibrium: 4, TooLarge: 5}
INTERRUPTED, TERMINATED = 130, 143  # 128 and the number of the signal, as shells have it

EXAMPLES: dict[Callable[..., Answer], str] = {
    verbs_safety.check: "acegames check my_game.yaml",
    verbs_files.show: "acegames show intersection --state ice",
    verbs_safety.frontier: "acegames frontier knapsack --curve --points 12",
    verbs_safety.reduce: "acegames reduce intersection -o reduced.yaml",
    verbs_solving.solve: "acegames solve intersection --concept ce --objective egalitarian -o solution.ace",
    verbs_solving.bracket: "acegames bracket drones --epsilon 0.5",
    verbs_solving.payoffs: "acegames payoffs intersection --concept ce --best egalitarian -o best.ace",
    verbs_solving.verify: "acegames verify solution.ace",
    verbs_solving.prove: "acegames prove solution.ace -o solution.proof --checker ace_check.py",
    verbs_solving.simulate: "acegames simulate solution.ace --episodes 10000 --seed 1",
    verbs_files.export: "acegames export solution.ace -o policy.csv",
    verbs_files.report: "acegames report solution.ace -o report.html",
    verbs_files.catalog: "acegames catalog intersection -o intersection.yaml",
    verbs_files.warm: "acegames warm",
    verbs_files.bench: "acegames bench",
}
"""Every verb, in the order of the help, with an example."""


def main() -> None:
    """Run the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a label that the encoding lacks must not end the program
            stream.reconfigure(errors="replace")
    widen()
    if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
        with contextlib.suppress(ValueError):  # not in the main thread
            signal.signal(signal.SIGTERM, _terminate)
    try:
        app(prog_name="acegames")
    except OSError as error:  # of standard output: a full disk
        with contextlib.suppress(OSError):
            complain(str(error))
        sys.exit(2)
    except (KeyboardInterrupt, typer.Abort):
        sys.exit(INTERRUPTED)


class _Terminated(SystemExit):
    """SIGTERM. What is being written is removed on the way out, as after Ctrl-C."""


def _terminate(*_: Any) -> None:
    raise _Terminated(TERMINATED)


PARTS_OF_A_GAME = ("--budget", "--budgets", "--horizon", "--initial")  # that no verb has an option for
NARROW = 60  # columns below which the frames of the help would cut the names of options


class _Verb(TyperCommand):
    """A verb. Its usage names the arguments and the options that it cannot do without."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        typed = list(args)  # which parsing changes
        try:
            return super().parse_args(ctx, args)
        except USAGE_ERROR as error:
            if getattr(error, "option_name", None) in PARTS_OF_A_GAME:
                error.possibilities = None  # nothing that is spelled alike would help
                error.message += opt.instead_of_part(typed, takes_cost=any(p.name == "cost" for p in self.params))
            raise

    def collect_usage_pieces(self, ctx: Any) -> list[str]:
        return usage(self)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        framed = self.rich_markup_mode
        self.rich_markup_mode = framed if shutil.get_terminal_size().columns >= NARROW else None
        super().format_help(ctx, formatter)
        self.rich_markup_mode = framed


def usage(command: Any) -> list[str]:
    """Return the words after the name of a verb: arguments, required options, "[OPTIONS]"."""
    words = []
    for param in command.params:
        name = param.metavar or param.name.upper()
        if param.param_type_name == "argument":
            words.append(name if param.required else f"[{name}]")
        elif param.required:
            words.append(f"{min(param.opts, key=len)} {name}")
    return [*words, "[OPTIONS]"]


class _CommandGroup(TyperGroup):
    """The verbs. Wrong words, such as an unknown option, are told in JSON too under --json."""

    def get_params(self, ctx: Any) -> list[Any]:
        return _without_types(super().get_params(ctx))

    def main(self, args: Sequence[str] | None = None, prog_name: str | None = None, *more: Any, **options: Any) -> Any:
        words = sys.argv[1:] if args is None else list(args)
        if more or "standalone_mode" in options or "--json" not in words:
            return super().main(args, prog_name, *more, **options)
        try:
            options["standalone_mode"] = False
            sys.exit(super().main(args, prog_name, **options))
        except USAGE_ERROR as error:
            from acegames.cli.json_answers import print_json

            fields = {"error": "UsageError", "message": error.format_message(), "place": None, "minimal_budgets": None}
            print_json(words[0] if words[0] in self.commands else None, error.exit_code, fields)
            sys.exit(error.exit_code)


def _without_types(params: list[Any]) -> list[Any]:
    """Return the parameters of a command. The help shows no type for flags, nor for arguments."""
    for param in params:
        if getattr(param, "is_flag", False):
            param.metavar = ""
        if param.param_type_name == "argument":
            param.display_type_rich = lambda ctx: None
    return params


def program_verb(function: Callable[..., Answer]) -> Callable[..., None]:
    """Give a verb --json and --quiet, print its answer, turn errors into one line and a code."""

    own, call = unfolded(function)

    @functools.wraps(function)
    def wrapped(*args: Any, as_json: bool = False, quiet: bool = False, **kwargs: Any) -> None:
        try:
            with speaking(quiet=quiet, as_json=as_json):
                answer = call(*args, **kwargs)
            code = answer.code
            if as_json:
                from acegames.cli.json_answers import print_json

                print_json(function.__name__, code, answer.data)
        except (KeyboardInterrupt, _Terminated) as stop:
            code = _stopped(stop, kwargs.get("checkpoint"))
        except MemoryError:
            code = _failed(TooLarge("the machine does not have enough memory for this"), function.__name__, as_json)
        except OverflowError as error:
            code = _failed(TooLarge(f"a number in this is too large for a float ({error})"), function.__name__, as_json)
        except BrokenPipeError:  # standard output, under --json
            out.on_broken_pipe()
        except (AceError, OSError) as error:
            code = _failed(in_option_words(error, kwargs), function.__name__, as_json)
        if code:
            raise typer.Exit(code)

    more = {"as_json": opt.Json, "quiet": opt.Quiet}
    added = [inspect.Parameter(n, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=a) for n, a in more.items()]
    wrapped.__dict__["__signature__"] = own.replace(parameters=[*own.parameters.values(), *added])
    paragraphs = (inspect.getdoc(function) or "").split("\n\n")
    wrapped.__doc__ = "\n\n".join(" ".join(text.split()) for text in paragraphs)  # lines of the help are wrapped anew
    wrapped.__annotations__ = {**{n: p.annotation for n, p in own.parameters.items()}, **more}
    return wrapped


def complain(message: str, code: int = 2) -> int:
    """Say in one line on standard error what is wrong."""
    err.print(f"[bold red]Error:[/] {escape(message)}", soft_wrap=True)
    return code


def _stopped(stop: BaseException, checkpoint: Any) -> int:
    word, code = ("terminated", TERMINATED) if isinstance(stop, _Terminated) else ("interrupted", INTERRUPTED)
    held = checkpoint and os.path.isdir(checkpoint) and os.listdir(checkpoint)
    left = f"; what was stored is in {checkpoint}, the same command goes on from there" if held else ""
    err.print(escape(f"{word}; nothing was written{left}"), soft_wrap=True)
    return code


def _failed(error: Exception, verb: str, as_json: bool) -> int:
    """Tell an error raised on purpose; under --json in JSON, unless standard output is full."""
    message = str(error)
    code = next((c for known, c in EXIT_CODES.items() if isinstance(error, known)), 2)
    if len(message) > MESSAGE:  # labels are quoted, and may be as long as the file
        message = f"{message[: MESSAGE - 100]} ... {message[-90:]}"
    if as_json:
        from acegames.cli.json_answers import error_data, print_json

        with contextlib.suppress(OSError):
            print_json(verb, code, error_data(error, message))
            return code
    return complain(message, code)


# -- errors of the library in the words of the command line


TYPED = {
    "solve with CE() or CCE()": "solve with --concept ce or --concept cce",
    'Nash(backend="gambit") or Nash(backend="quantecon")': "--backend gambit or --backend quantecon",
    "Nash(objective=None)": "--objective none",
    "relative and rounding say how costs are rounded; give epsilon too": (
        "--relative and --rounding say how costs are rounded; give --epsilon too"
    ),
    "bracket rounds costs by it (without rounding, solve(game) is exact)": (
        "bracket rounds costs by it (`acegames solve` is exact without it)"
    ),
    "give outside=, the payoff there (one number, or one per player)": "give --outside, the payoff there",
    "write them to a file of their own beside it (data=True)": "write them to a file of their own beside it (--data)",
    "solve it and write what is faced at one place: stage_game(solution, t, state, spent).to_nfg(path)": (
        "of a longer game, Python writes what is faced in one situation: "
        "acegames.adapters.gambit.stage_game(solution, t, state, spent).to_nfg(path)"
    ),
}
"""What the library advises in Python, and the same as it is typed in a shell."""

OTHERWISE = {"constants": "-p", "budget": "--cost"}
"""Arguments of `adapters.storm.read_model` that have another name in a shell."""


def in_option_words(error: Exception, options: Collection[str]) -> Exception:
    """Return the error, which names the options of the verb as they are typed."""
    if not isinstance(error, AceError):
        return error
    message = str(error)
    name, colon, rest = message.partition(":")
    if isinstance(error, InvalidOption) and colon and name in options:
        message = f"--{name.replace('_', '-')}:{rest}"
    elif isinstance(error, InvalidOption) and colon and name in OTHERWISE and "cost" in options:
        message = f"{OTHERWISE[name]}:{rest}"
    for said, typed in TYPED.items():
        message = message.replace(said, typed)
    error.args = (message,)
    return error


app = typer.Typer(
    name="acegames",
    cls=_CommandGroup,
    help="Equilibria of Markov games whose hard budgets hold at every moment, with probability one.",
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Example:  acegames solve intersection -o solution.ace",
)
for _function, _example in EXAMPLES.items():
    app.command(cls=_Verb, epilog=f"Example:  {_example}")(program_verb(_function))


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Show the version and exit.")] = False) -> None:
    if version:
        out.print(f"acegames {ace.__version__}")
        raise typer.Exit
