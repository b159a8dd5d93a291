"""The GPU engine against the local engine: the same bytes, and how long each takes.

    PYTHONPATH=src python benchmarks/gpu.py check       solution files, byte by byte; `--share 2/4`: every fourth
                                                        of them from the second on, for processes side by side
    PYTHONPATH=src python benchmarks/gpu.py random      the same of the 200 random games of the tests, with their
                                                        certificates; needs Hypothesis and SciPy
    PYTHONPATH=src python benchmarks/gpu.py small       the same of few small games that use every kernel, for
                                                        compute-sanitizer (memcheck, racecheck, synccheck)
    PYTHONPATH=src python benchmarks/gpu.py time        whole solves; `large` adds the largest games
    PYTHONPATH=src python benchmarks/gpu.py huge        a billion stage games, twice; needs 64 GB of memory
    PYTHONPATH=src python benchmarks/gpu.py first       the first solve of a process, without kernels on disk and with them
    PYTHONPATH=src python benchmarks/gpu.py even        from how many stage games on the GPU is faster
    PYTHONPATH=src python benchmarks/gpu.py two         two processes that share the card, against one
    PYTHONPATH=src python benchmarks/gpu.py interrupt   how soon Ctrl-C ends a solve, and that a checkpoint goes on
    PYTHONPATH=src python benchmarks/gpu.py parts       where the time of one solve goes
    PYTHONPATH=src python benchmarks/gpu.py stages      stage games a second, from memory to their answers
    PYTHONPATH=src python benchmarks/gpu.py programs    plain stage programs a second, with a thread or a warp each
    PYTHONPATH=src python benchmarks/gpu.py verify      certificates, field by field, and how long they take;
                                                        `verify-large` adds the largest game

Needs a GPU and `acegames[gpu]`, and nothing of the command line.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import importlib.util
import logging
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import acegames as ace

warnings.filterwarnings("ignore")
BEGAN = time.perf_counter()


def say(*words: Any) -> None:
    """Print at once, with the time since the beginning."""
    print(f"[{time.perf_counter() - BEGAN:6.1f} s]", *words, flush=True)


def random_game(*size: int, **more: Any) -> Any:
    """The game of `acegames bench`, which is loaded without the command line's packages."""
    file = Path(ace.__file__).parent / "cli" / "bench.py"
    spec = importlib.util.spec_from_file_location("acegames_bench", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.random_game(*size, **more)


def digest(solution: Any) -> str:
    """Of all that a solution consists of."""
    reached, arrays = solution.policy.reached, [solution.values]
    for x in solution.policy.layers:
        arrays += [x.code, x.values, x.mixed_size, x.mixed_row, x.mixed_prob, x.cells.bits]
    for x in reached.layers if reached is not None else ():
        arrays.append(x.cells.bits if x.cells.bits is not None else x.cells.keys)
    with ThreadPoolExecutor() as threads:
        return hashlib.sha256(b"".join(threads.map(digest_of, arrays))).hexdigest()


def digest_of(array: Any) -> bytes:
    """Of an array, or of None."""
    return hashlib.sha256(b"" if array is None else np.ascontiguousarray(array)).digest()


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    """Seconds, and what the call returns."""
    began = time.perf_counter()
    found = call()
    return time.perf_counter() - began, found


def files_agree(name: str, game: Any, concept: Any, engine: Any) -> bool:
    """Solve on both engines, and compare the solution files."""
    here, there = (ace.solve(game, concept, engine=x) for x in (engine.host, engine))
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder) / "a.ace", Path(folder) / "b.ace"]
        for file, solution in zip(files, (here, there), strict=True):
            solution.save(file)
        same = files[0].read_bytes() == files[1].read_bytes()
    counts = [(x.stats.pairs, x.stats.programs, x.stats.repaired) for x in (here, there)]
    ok = same and counts[0] == counts[1]
    say("same" if ok else "DIFFERENT", name, concept, counts, there.stats.where)
    return ok


def check(share: slice) -> None:
    """Games of many kinds."""
    cases = [
        *(
            (f"random {size} {more}", random_game(*size, **more), concept)
            for size, more in (
                ((4, 12, 24), {}),
                ((3, 6, 9), {"constraints": 1}),
                ((3, 8, 9), {"constraints": 3}),
                ((4, 8, 20), {"actions": 2}),
                ((3, 6, 9), {"actions": 4}),
                ((3, 6, 9), {"actions": 5}),
            )
            for concept in (
                ace.CE(),
                ace.CCE(),
                ace.CE("fair"),
                ace.CCE("egalitarian"),
                ace.CE(None),
                ace.CCE(floor=5),
                ace.CE(floor=0),
            )
        ),
    ]
    cases += [
        (name, ace.catalog.get(name), concept) for name in ace.catalog.names() for concept in (ace.CE(), ace.CCE())
    ]
    agree(cases[share])


def random(share: slice) -> None:
    """The random games of the tests: all objectives, floors, schedules, masks, rounded costs, and so on."""
    sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))
    import oracle
    import random_games

    cases, objectives = list[Any](), ("welfare", "egalitarian", "fair", None, "p0")
    for k in range(200)[share]:
        rng, players = np.random.default_rng([20, k]), 3 if k % 4 == 3 else 2
        make = random_games.changing_game if k % 3 == 0 else oracle.random_game
        game = make(rng, players=players)
        concept = (ace.CE, ace.CCE)[k % 2](objectives[k // 2 % 5], floor=(0.0, 1.0, 5.0)[k % 3])
        if ace.feasibility(game).feasible:
            cases.append((f"random {k}", game, concept))
    agree(cases, certificates=True)


def agree(cases: list[Any], *, certificates: bool = False) -> None:
    """Compare solution files, and say how many are the same."""
    engine, good, bad = ace.GPUEngine(smallest=0, host=ace.LocalEngine(dense=True)), 0, 0
    for name, game, concept in cases:
        try:
            ok = files_agree(name, game, concept, engine)
            if certificates:
                policy = ace.solve(game, concept).policy
                ok &= same_certificate(ace.verify(game, policy), ace.verify(game, policy, engine=engine))
        except ace.errors.AceError as error:
            say("not solved", name, concept, type(error).__name__, str(error)[:80])
            continue
        except Exception:
            traceback.print_exc(limit=6)
            ok = False
        good, bad = good + ok, bad + (not ok)
    say(f"{good} same, {bad} different")


def small(share: slice) -> None:
    """Games that a thread or a warp solves, with repairs; and a certificate."""
    engine = ace.GPUEngine(smallest=0)
    cases = [(3, ace.CE()), (3, ace.CCE()), (3, ace.CE("fair")), (5, ace.CE()), (5, ace.CCE())]
    for actions, concept in cases[share]:
        game = random_game(3, 4, 6, actions=actions)
        files_agree(f"{actions} actions", game, concept, engine)
        policy = ace.solve(game, concept).policy
        say(
            "same"
            if same_certificate(ace.verify(game, policy), ace.verify(game, policy, engine=engine))
            else "DIFFERENT"
        )


def times(*, large: bool) -> None:
    """Whole solves, the second of a process."""
    games = [((4, 12, 24), {}), ((10, 45, 150), {}), ((5, 26, 26), {"constraints": 3}), ((14, 100, 330), {})]
    if large:
        games.append(((10, 45, 1500), {"largest": 50}))
    for size, more in games:
        for concept in (ace.CE(), ace.CCE()):
            try:
                compare(size, more, concept)
            except Exception:
                traceback.print_exc(limit=6)


def compare(size: tuple[int, ...], more: dict[str, int], concept: Any) -> None:
    """Time one game on both engines."""
    game = random_game(*size, **more)
    first, _ = timed(lambda: ace.solve(game, concept, engine=ace.GPUEngine(smallest=0)))
    second, there = timed(lambda: ace.solve(game, concept, engine=ace.GPUEngine(smallest=0)))
    ace.solve(random_game(3, 4, 6, **more), concept)
    took, here = timed(lambda: ace.solve(game, concept))
    stats = there.stats
    same = "same" if digest(here) == digest(there) else "DIFFERENT"
    say(size, more, concept, f"{stats.pairs:.4g} pairs, {stats.programs:.4g} programs, {stats.repaired} repaired;")
    say(f"    GPU {second:.3f} s ({stats.pairs / second:.3g}/s; first {first:.1f} s), CPU {took:.3f} s: {same}")


def huge() -> None:
    """A game with a billion stage games, on the card and then on the processors."""
    game, found = random_game(10, 112, 3750, largest=50), set()
    for engine in (ace.GPUEngine(), ace.LocalEngine()):
        seconds, solution = timed(partial(ace.solve, game, ace.CE(), engine=engine))
        say(f"{type(engine).__name__}: {seconds:.1f} s, {solution.stats}")
        found.add(digest(solution))
        del solution
    say("same" if len(found) == 1 else "DIFFERENT")


def first() -> None:
    """The first solve of a process that has only imported acegames: numba and the driver are loaded in it."""
    code = (
        "import gpu, acegames as ace; solve = lambda: ace.solve(game, ace.CE(), engine=ace.GPUEngine(smallest=0))\n"
        "game = gpu.random_game(14, 100, 330); print(*(gpu.timed(solve)[0] for _ in range(2)))"
    )
    with tempfile.TemporaryDirectory() as folder:
        os.environ["NUMBA_CACHE_DIR"] = folder
        for kernels in ("are compiled", *["are on disk"] * 5):
            told = _python(code).communicate()[0].split()[-2:]
            say(f"kernels {kernels}: first solve {float(told[0]):.2f} s, second {float(told[1]):.2f} s")
        del os.environ["NUMBA_CACHE_DIR"]


def even() -> None:
    """Games around the size from which on the card pays: medians of turns side by side."""
    for concept in (ace.CE(), ace.CCE()):
        for size in ((5, 16, 40), (6, 20, 50), (6, 25, 70), (7, 28, 72), (8, 30, 80), (8, 35, 100)):
            compare_small(random_game(*size), concept)


def compare_small(game: Any, concept: Any) -> None:
    """Time a small game on both engines, in turn."""
    engines, turns = (ace.GPUEngine(smallest=0), ace.LocalEngine()), list[Any]()
    for _ in range(8):  # the first is not counted
        turns.append([timed(partial(ace.solve, game, concept, engine=engine)) for engine in engines])
    same = "same" if len({digest(found) for turn in turns for _, found in turn}) == 1 else "DIFFERENT"
    card, processors = (statistics.median(turn[k][0] for turn in turns[1:]) for k in (0, 1))
    faster = "the GPU" if card < processors else "the processors"
    say(f"{concept}, {turns[0][0][1].stats.pairs:,} pairs: GPU {card:.3f} s, CPU {processors:.3f} s: {faster}; {same}")


def two() -> None:
    """Two processes at once, each with a game of 11 million pairs; then one alone."""
    code = (
        "import gpu, acegames as ace, sys; game, engine = gpu.random_game(14, 100, 330), ace.GPUEngine(smallest=0)\n"
        "ace.solve(game, ace.CE(), engine=engine); print(flush=True); sys.stdin.readline()\n"
        "print(*(f(x) for x in [gpu.timed(lambda: ace.solve(game, ace.CE(), engine=engine))]"
        " for f in (lambda x: x[0], lambda x: gpu.digest(x[1]))), flush=True)"
    )
    found = set()
    for count in (2, 1):
        begun = [_python(code) for _ in range(count)]
        for process in begun:  # all have solved it once
            process.stdout.readline()
        for process in begun:
            process.stdin.write("\n")
            process.stdin.flush()
        told = [process.communicate()[0] for process in begun]
        found |= {words.split()[-1] for words in told}
        say(f"{count} at once: {[f'{float(words.split()[-2]):.3f} s' for words in told]}")
    say("same" if len(found) == 1 else "DIFFERENT")


def interrupt() -> None:
    """Ctrl-C in the middle of a solve with a checkpoint, which then goes on to the same answer."""
    size = (14, 100, 330)
    with tempfile.TemporaryDirectory() as folder:
        code = (
            f"import gpu, acegames as ace; game = gpu.random_game(*{size})\n"
            f"print('begun', flush=True); ace.solve(game, ace.CCE(), engine=ace.GPUEngine(), checkpoint={folder!r})"
        )
        process = _python(code)
        process.stdout.readline()
        while stored_bytes(folder) < 2**20 and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        seconds, _ = timed(process.wait)
        ended = f"it ended {seconds:.2f} s later, with code {process.returncode}"
        say(f"interrupted: {ended}; {stored_bytes(folder):,} bytes are stored")
        game = random_game(*size)
        whole = digest(ace.solve(game, ace.CCE(), engine=ace.GPUEngine()))
        resumed = digest(ace.solve(game, ace.CCE(), engine=ace.GPUEngine(), checkpoint=folder))
        say("same" if resumed == whole else "DIFFERENT")


def stored_bytes(folder: str) -> int:
    """Bytes of all files below a folder."""
    return sum(x.stat().st_size for x in Path(folder).rglob("*") if x.is_file())


def _python(code: str) -> Any:
    """Another process, in this folder."""
    command = [sys.executable, "-c", code]
    paths = os.pathsep.join([str(Path(__file__).parent), str(Path(ace.__file__).parents[1])])
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env={**os.environ, "PYTHONPATH": paths}, **pipes)


def parts() -> None:
    """Where the time of a solve goes, by kernel; each is waited for."""
    from acegames.system import cuda_card

    took: dict[str, float] = {}
    launch, send = cuda_card.Card.launch, cuda_card.Card.send

    def timed_launch(self: Any, recipe: Any, blocks: int, given: Any) -> None:
        self.prepare(recipe, given)
        self.synchronise()
        seconds, _ = timed(lambda: (launch(self, recipe, blocks, given), self.synchronise()))
        took[recipe.name] = took.get(recipe.name, 0.0) + seconds

    def timed_send(self: Any, arrays: Any) -> Any:
        receive = send(self, arrays)

        def received() -> None:
            seconds, _ = timed(receive)
            took["receive"] = took.get("receive", 0.0) + seconds

        return received

    cuda_card.Card.launch, cuda_card.Card.send = timed_launch, timed_send
    for size, more in (((14, 100, 330), {}), ((10, 45, 1500), {"largest": 50})):
        for concept in (ace.CE(), ace.CCE()):
            try:
                took.clear()
                solve = partial(ace.solve, random_game(*size, **more), concept, engine=ace.GPUEngine(smallest=0))
                seconds, solution = timed(solve)
                say(size, concept, solution.stats, f"{seconds:.2f} s:")
                say("   ", {name: f"{1e3 * x:.1f} ms" for name, x in sorted(took.items(), key=lambda y: -y[1])})
            except Exception:
                traceback.print_exc(limit=6)
    cuda_card.Card.launch, cuda_card.Card.send = launch, send


def same_certificate(one: Any, two: Any) -> bool:
    """Whether two agree in every field, numbers to the last bit."""

    def said(x: Any) -> Any:
        return (x.shape, x.tobytes()) if isinstance(x, np.ndarray) and x.dtype != object else repr(x)

    return all(said(getattr(one, f.name)) == said(getattr(two, f.name)) for f in dataclasses.fields(one))


def played_otherwise(policy: Any) -> Any:
    """The same with other probabilities where play is mixed, so that deviations gain."""
    rng, layers = np.random.default_rng(0), []
    for layer in policy.layers:
        prob = layer.mixed_prob * rng.uniform(0.5, 1.0, len(layer.mixed_prob))
        first = np.cumsum(layer.mixed_size, dtype=np.int64) - layer.mixed_size
        total = np.add.reduceat(prob, first) if len(first) else prob
        layers.append(dataclasses.replace(layer, mixed_prob=prob / np.repeat(total, layer.mixed_size)))
    return dataclasses.replace(policy, layers=tuple(layers))


def verify(*, large: bool) -> None:
    """Games of growing size, each with a policy that is stable and with one that is not."""
    logging.basicConfig(format="    %(message)s", level=logging.INFO)
    games = [((4, 12, 24), {}), ((10, 45, 150), {}), ((5, 26, 26), {"constraints": 3}), ((14, 100, 330), {})]
    if large:
        games.append(((10, 45, 1500), {"largest": 50}))
    for size, more in games:
        game = random_game(*size, **more)
        for concept in (ace.CE(), ace.CCE()):
            try:
                policy = ace.solve(game, concept, engine=ace.GPUEngine(smallest=0)).policy
                for judged in (policy, played_otherwise(policy)):
                    compare_certificates((size, more, concept), game, judged)
            except Exception:
                traceback.print_exc(limit=6)


def compare_certificates(name: Any, game: Any, policy: Any) -> None:
    """Time one policy on the card and on the processors; the second time of a process counts."""
    first, _ = timed(lambda: ace.verify(game, policy, engine=ace.GPUEngine(smallest=0)))
    second, there = timed(lambda: ace.verify(game, policy, engine=ace.GPUEngine(smallest=0)))
    ace.verify(game, policy)
    took, here = timed(lambda: ace.verify(game, policy))
    same = "same" if same_certificate(here, there) else "DIFFERENT"
    say(*name, f"ok {here.ok}, {here.pairs:.4g} pairs:")
    say(f"    GPU {second:.3f} s ({here.pairs / second:.3g}/s; first {first:.1f} s), CPU {took:.3f} s: {same}")


def main() -> None:
    """Do what the command line names, in its order."""
    todo: dict[str, Callable[[Any], Any]] = {
        "check": lambda card: check(share),
        "random": lambda card: random(share),
        "small": lambda card: small(share),
        "stages": lambda card: gpu_programs.stages(card, say),
        "programs": lambda card: gpu_programs.programs(card, say),
        "time": lambda card: times(large=False),
        "large": lambda card: times(large=True),
        "huge": lambda card: huge(),
        "first": lambda card: first(),
        "even": lambda card: even(),
        "two": lambda card: two(),
        "interrupt": lambda card: interrupt(),
        "parts": lambda card: parts(),
        "verify": lambda card: verify(large=False),
        "verify-large": lambda card: verify(large=True),
    }
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    parser.add_argument("what", nargs="+", choices=todo)
    parser.add_argument(
        "--share", default="1/1", help="of check, random and small, as in 2/4: every fourth from the second on"
    )
    told = parser.parse_args()
    words, (begin, each) = told.what, map(int, told.share.split("/"))
    share = slice(begin - 1, None, each)
    import gpu_programs  # not above: processes that this one begins load numba when they solve

    from acegames.system.cuda_card import open_card

    card = open_card(0)
    say(card.name, card.capability, f"{card.processors} processors, {card.free / 2**30:.0f} GiB free")
    for word in words:
        todo[word](card)


if __name__ == "__main__":
    main()
