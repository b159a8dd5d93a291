"""How good are the tests? Change the code a little, in one place at a time, and see whether a test fails.

    python reliability/mutate.py --sample 40 --seed 0 --jobs 2          # 40 mutants of each file
    python reliability/mutate.py --module tracker --module simulation    # all mutants of these

For each file the tests that should notice are listed below. They are run once with the code as it is, which tells how long each
takes and which functions it calls. A mutant is then given to the tests that call its function, the quick ones first, up to the first
that fails. Mutants of compiled functions run as plain Python, where an index out of bounds is an error as well. Files are changed in
copies of the repository, one for each job; every mutant gets a process of its own, forked from one that has imported the libraries.

What was found is kept in a JSON file after every mutant, and the next run goes on there (`--fresh` begins anew, `--survivors` runs
those that survived again, after tests were added, or with `--longest 60` by slow tests too). Survivors that no test can notice
are listed, with the reason, in survivors.md beside this file.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mutants import Mutant, mutants, source_of, telling

ROOT = Path(__file__).resolve().parents[1]
EXCUSES = Path(__file__).with_name("survivors.md")
COPIED = ("src", "tests", "checker", "reliability", "examples", "docs", "benchmarks")
LONGEST = (
    4.0  # seconds of tests of one file that a mutant is given to, the quick ones first; of all files four times that
)
SLOW = 5.0  # a test that takes longer is left out
MEMORY = 8 * 2**30

FEASIBLE = ("feasible_properties", "feasibility", "reduction", "almost_sure", "curve", "local")
POLICY = ("solution", "policy", "records_of_players", "random_play", "changing_games", "simulation", "checkpoint")
VERIFY = (
    *("verify", "verify_compiled", "verify_rows", "verify_rounded", "stakes", "random_play"),
    *("verify_nash", "nash_games", "changing_games", "proof", "exactly", "tolerances"),
)
SHIELD = ("shield", "shield_products", "changing_games", "pettingzoo_shielding")
ROUNDED = (
    *("rounded_games", "random_play", "approximate", "random_costs", "simulation_random_costs", "verify_rounded"),
    "learn",
)
CELLS = ("feasible_properties", "feasibility", "reduction", "almost_sure", "shield")


def _each(folder: str, tests: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    return {f"{folder}/{path.name}": tests for path in sorted((ROOT / "src/acegames" / folder).glob("*.py"))}


TESTED: dict[str, tuple[str, ...]] = {
    **_each("safety", FEASIBLE),
    "safety/space.py": ("local", "solution", *FEASIBLE[:-1]),
    **{f"kernels/{name}.py": CELLS for name in ("boxes", "dense", "sparse")},
    "kernels/lookup.py": (*SHIELD, *CELLS[:-1], "records_of_players"),
    "policy/policy.py": (*POLICY, "tables"),
    "policy/layer.py": ("product_policies", "nash", *POLICY, "tables"),
    "policy/policy_file.py": ("checks", *POLICY, "hostile", "games"),
    "files/solution_file.py": ("checks", *POLICY, "hostile", "games", "cli"),
    "engines/checkpoint.py": ("checkpoint", "solution", "hostile"),
    "policy/tracker.py": (*ROUNDED, "policy"),
    "approximate/rounding.py": ROUNDED,
    "policy/simulation.py": ("simulation", "random_play", "simulation_random_costs", "user_functions", "policy"),
    "learn/known.py": ("known_facts", "learn", "user_functions"),
    "learn/safe_policy.py": ("learn", "user_functions"),
    "learn/confidence.py": ("learn",),
    **_each("shield", SHIELD),
    **_each("verifier", VERIFY),
    "verifier/__init__.py": tuple(dict.fromkeys(("on_card", "blocks", "exactly", *VERIFY))),
    "verifier/certificate.py": ("reservoirs", *VERIFY),
    "verifier/pair_kernels.py": ("verify", "verify_rows", "verify_compiled", "stakes"),
    "verifier/on_cluster.py": ("blocks",),
    "verifier/on_gpu.py": ("on_card", "on_card_code"),
    "verifier/counting.py": ("verify_rounded", "random_cost_extremes", "random_costs", "approximate"),
    "checker/ace_check.py": ("checker", "stakes", "proof", "changing_games"),
}
"""Files, below src/acegames or the repository, and the tests that should notice changes of them, the most to the point first."""

PARTS = {
    "kernels/dense.py": {"line_rows"},
    "kernels/sparse.py": {"_slot_of", "build_index", "find", "next_cells", "expand", "sweep"},
}
"""Of these files, the functions that decide what is safe. How stages are solved is judged by the verifier."""

COMPILED = tuple(
    f"src/acegames/{name}"
    for name in TESTED
    if name.startswith("kernels/") or name.endswith(("_kernels.py", "on_gpu.py"))
)
LOADED = (
    *("acegames.kernels", "acegames.verifier.pair_kernels", "acegames.system.compiled", "acegames.system.compiling"),
    *("acegames.system.machine_code", "acegames.system.linking", "acegames.numerics", "acegames.errors"),
)
"""Packages and modules that stay in memory, with what is compiled, unless a compiled file is changed."""

TEST_FILES = {path.stem.removeprefix("test_"): path for path in sorted((ROOT / "tests").rglob("test_*.py"))}


def path_of(short: str) -> str:
    """Where a file of `TESTED` is, below the repository."""
    return short if short.startswith("checker/") else f"src/acegames/{short}"


def test_file(name: str) -> str:
    """Where the tests of that name are, below the repository."""
    if name not in TEST_FILES:
        raise SystemExit(f"no tests/*/test_{name}.py, which TESTED in {__file__} names")
    return str(TEST_FILES[name].relative_to(ROOT))


@dataclass
class Known:
    """What the tests of some files did with the code as it is."""

    seconds: dict[str, float]  # of each test that passed
    calls: dict[str, list[str]]  # the tests that call a function, by "path:function"


@dataclass
class Running:
    """A mutant that is being tested."""

    mutant: Mutant
    slot: int
    begun: float
    limit: float
    tests: int


@dataclass
class Results:
    """What is known of mutants so far, kept in a file."""

    path: Path
    found: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: Path) -> Results:
        """What an earlier run found."""
        return cls(path, json.loads(path.read_text()) if path.exists() else {})

    def add(self, mutant: Mutant, status: str, seconds: float, tests: int) -> None:
        """Note what happened to a mutant, in the file too."""
        self.found[mutant.name] = {
            "status": status, "line": mutant.line, "change": mutant.change, "seconds": round(seconds, 1), "tests": tests,
        }  # fmt: skip
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_suffix(".new")
        new.write_text(json.dumps(self.found, indent=0, sort_keys=True))
        new.replace(self.path)


# -- tests, in a process of their own ---------------------------------------------------------------------------------


class Recorder:
    """A plugin of pytest: how long each test takes, and which functions of some files it calls."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self.failed: set[str] = set()
        self.calls: dict[str, set[str]] = {}
        self.now: set[str] = set()

    def called(self, function: str) -> None:
        """What every function says of itself; see `mutants.telling`."""
        self.now.add(function)

    def pytest_runtest_logstart(self, nodeid: str, location: Any) -> None:
        """A test begins."""
        self.now = self.calls.setdefault(nodeid, set())
        signal.signal(signal.SIGALRM, _too_slow)
        signal.setitimer(signal.ITIMER_REAL, 2 * SLOW)

    def pytest_runtest_logfinish(self, nodeid: str, location: Any) -> None:
        """It has ended."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_runtest_logreport(self, report: Any) -> None:
        """How it went."""
        if report.outcome != "passed":
            self.failed.add(report.nodeid)
        self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration

    def known(self) -> Known:
        """The tests that passed, and were not too slow."""
        good = {test: s for test, s in self.seconds.items() if test not in self.failed and s <= SLOW}
        by_function: dict[str, list[str]] = {}
        for test in sorted(good, key=good.__getitem__):
            for function in self.calls.get(test, ()):
                by_function.setdefault(function, []).append(test)
        return Known(good, by_function)


def _too_slow(signum: int, frame: Any) -> None:
    raise TimeoutError("too slow for mutants")


class Chosen:
    """A plugin of pytest: only some tests, in a given order."""

    def __init__(self, tests: list[str]) -> None:
        self.order = {test: k for k, test in enumerate(tests)}

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        """Leave out the others."""
        items[:] = sorted((i for i in items if i.nodeid in self.order), key=lambda i: self.order[i.nodeid])


def run_tests(copy: Path, files: list[str], plugin: Any, plain: bool, log: Path) -> int:
    """Run tests in this process, which has not imported acegames yet."""
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(copy)
    sys.path[:0] = [str(copy), str(copy / "src")]
    os.environ["PYTHONPATH"] = str(copy / "src")
    import pytest
    from hypothesis import settings

    if plain:
        forget(())
        from acegames.system import compiled

        compiled._compiled.set(False)
    settings.register_profile("mutants", derandomize=True, database=None, deadline=None)
    settings.load_profile("mutants")
    words = [
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:xdist",
        "-m",
        "not slow",
        "--tb=line",
        "--rootdir",
        str(copy),
    ]
    words += ["-W", "ignore::pytest.PytestAssertRewriteWarning"]  # hypothesis is imported before
    if isinstance(plugin, Recorder):
        del words[0]
    if plain:
        words += ["-W", "ignore::RuntimeWarning"]  # numpy warns where machine code wraps around on purpose
    for file in files:  # one after the other: what the first of them notices saves reading the others
        status = int(pytest.main([*words, file], plugins=[plugin]))
        if status:
            return status
    return 0


def warm() -> None:
    """Import what every child needs, and load the compiled kernels, so that forking is all that a mutant costs."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    sys.path.insert(0, str(ROOT / "src"))
    try:
        for name in (
            "hypothesis.strategies",
            "pytest",
            "numpy.testing",
            "scipy.optimize",
            "scipy.sparse",
            "scipy.stats",
        ):
            importlib.import_module(name)
    except ModuleNotFoundError as error:
        sys.exit(f"{error}; the tests need more packages: pip install 'acegames[dev]'")
    import acegames as ace
    from acegames.system.compiled import running

    game = ace.catalog.get("intersection")
    with running(compiled=True):
        for concept in (ace.CCE(), ace.CE(), ace.Nash()):
            ace.verify(game, ace.solve(game, concept).policy, concept)
        ace.Shield(game)
        ace.feasibility(game)
    forget(LOADED)


def forget(but: tuple[str, ...]) -> None:
    """Import acegames anew the next time, some modules aside."""
    for name in list(sys.modules):
        if name.partition(".")[0] == "acegames" and not f"{name}.".startswith(tuple(f"{kept}." for kept in but)):
            del sys.modules[name]


def in_child(work: Any) -> int:
    """Fork; the child does the work and exits with what it returns."""
    child = os.fork()
    if child:
        return child
    status = 70
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        status = work()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def learn_tests(copies: list[Path], shorts: list[str], plain: bool, folder: Path) -> Known:
    """Run all tests that are listed for some files, with the code as it is; what was learnt of a file of tests is kept."""
    targets = sorted({path_of(short) for short in TESTED if (path_of(short) in COMPILED) == plain})
    names = dict.fromkeys(name for short in shorts for name in TESTED[short])
    files = [test_file(name) for name in names]
    kept = folder / f"learnt-{'plain' if plain else 'compiled'}"
    kept.mkdir(parents=True, exist_ok=True)
    answers = {}
    for file in files:
        digest = hashlib.sha256((copies[0] / file).read_bytes()).hexdigest()[:16]
        answers[file] = kept / f"{Path(file).stem}-{digest}.json"
    todo = [file for file in files if not answers[file].exists()]
    running: dict[int, Path] = {}
    free = list(copies)
    while todo or running:
        while todo and free:
            copy, file = free.pop(), todo.pop()
            running[in_child(lambda c=copy, f=file: _learn(c, f, targets, plain, answers[f]))] = copy
        child, _ = os.wait()
        if child in running:  # else it compiles kernels
            free.append(running.pop(child))
    known = Known({}, {})
    for answer in answers.values():
        seconds, calls = json.loads(answer.read_text()) if answer.exists() else ({}, {})
        known.seconds.update(seconds)
        for function, tests in calls.items():
            known.calls.setdefault(function, []).extend(tests)
    if not known.seconds:
        raise SystemExit(f"the tests cannot be run:\n{(copies[0] / 'mutant.log').read_text()[-2000:]}")
    return known


def _learn(copy: Path, file: str, targets: list[str], plain: bool, answer: Path) -> int:
    plugin = Recorder()
    sys.modules["mutants_called"] = plugin  # type: ignore[assignment]
    for target in targets:
        (copy / target).write_text(telling((ROOT / target).read_text(), target))
    try:
        run_tests(copy, [file], plugin, plain, copy / "mutant.log")
    finally:
        for target in targets:
            shutil.copy2(ROOT / target, copy / target)
    known = plugin.known()
    answer.write_text(json.dumps([known.seconds, known.calls]))
    return 0


def tests_for(mutant: Mutant, short: str, known: Known, longest: float) -> list[str]:
    """The tests that call the mutant's function, file by file, the quick ones first; code outside of functions concerns them all."""
    at_import = mutant.function not in mutant.functions
    found = list(known.seconds) if at_import else known.calls.get(f"{mutant.module}:{mutant.function}", [])
    chosen, spent, most = [], 0.0, longest / 4 if at_import else longest
    for name in TESTED[short]:
        total = 0.0
        for test in sorted(found, key=known.seconds.__getitem__):
            if test.partition("::")[0] == test_file(name) and total < min(most, 4 * longest - spent):
                chosen.append(test)
                total += known.seconds[test]
        spent += total
    return chosen


# -- mutants, in copies of the repository -----------------------------------------------------------------------------


def make_copy(folder: Path) -> Path:
    """A copy with times as they are, so that what numba has compiled is found."""
    for name in COPIED:
        if (ROOT / name).exists():
            shutil.copytree(ROOT / name, folder / name, symlinks=True)
    for name in ("pyproject.toml", "README.md", "CHANGELOG.md"):
        shutil.copy2(ROOT / name, folder / name)
    return folder


def run_all(
    chosen: list[tuple[Mutant, str]], known: Known, copies: list[Path], plain: bool, results: Results, longest: float
) -> None:
    """Run mutants, as many at a time as there are copies."""
    todo, free, running = list(reversed(chosen)), list(range(len(copies))), {}
    stamp = int(time.time()) - 10**7
    while todo or running:
        while todo and free:
            mutant, short = todo.pop()
            tests = tests_for(mutant, short, known, longest)
            if not tests:
                results.add(mutant, "survived", 0.0, 0)
                continue
            slot = free.pop()
            copy, stamp = copies[slot], stamp + 2
            target = copy / mutant.module
            target.write_text(source_of(ROOT, mutant))
            os.utime(target, (stamp, stamp))  # another time, so that no compiled file of another mutant is taken for it
            files = list(dict.fromkeys(test.partition("::")[0] for test in tests))
            log = copy / "mutant.log"
            child = in_child(lambda c=copy, f=files, t=tests, o=log: run_tests(c, f, Chosen(t), plain, o))
            limit = 20 + 4 * sum(known.seconds[test] for test in tests)
            running[child] = Running(mutant, slot, time.monotonic(), limit, len(tests))
        _collect(running, free, copies, results)


def _collect(running: dict[int, Running], free: list[int], copies: list[Path], results: Results) -> None:
    """Wait a little; note what has ended, and end what takes too long."""
    time.sleep(0.02)
    for child, run in list(running.items()):
        seconds = time.monotonic() - run.begun
        ended, status = os.waitpid(child, os.WNOHANG)
        if not ended and seconds <= run.limit:
            continue
        said = "timeout"
        if ended:
            code = os.waitstatus_to_exitcode(status)
            said = {0: "survived", 5: "survived"}.get(code, "killed")
        else:
            os.killpg(child, signal.SIGKILL)
            os.waitpid(child, 0)
        module = run.mutant.module
        shutil.copy2(ROOT / module, copies[run.slot] / module)
        results.add(run.mutant, said, seconds, run.tests)
        free.append(run.slot)
        del running[child]


# -- what came out ----------------------------------------------------------------------------------------------------


def excuses() -> dict[str, str]:
    """Mutants that no test can notice, and the change that was looked at: lines "- `name` `change` reason"."""
    text = EXCUSES.read_text() if EXCUSES.exists() else ""
    return dict(re.findall(r"^- `([^`]+)` `([^`]+)`", text, flags=re.MULTILINE))


def stale() -> dict[str, str]:
    """Each reason whose mutant is gone or changes something else now, by name, with the name of the only mutant that it can mean, or ""."""
    now = [m for s in TESTED for m in mutants(ROOT, path_of(s), PARTS.get(s))]
    changes = {m.name: m.change for m in now}
    meant: dict[tuple[str, str], list[str]] = {}
    for m in now:
        meant.setdefault((m.function.rpartition(".")[2], m.change), []).append(m.name)
    found = {}
    for name, change in excuses().items():
        if changes.get(name) != change:
            file, function, *_ = name.split(":")
            likely = [
                x
                for x in meant.get((function.rpartition(".")[2], change), [])
                if x.startswith(f"{file}:") or len(change) > len("min -> max")
            ]
            found[name] = likely[0] if len(likely) == 1 else ""
    return found


def tidy(found: dict[str, str]) -> None:
    """Rename what moved in survivors.md, and leave out what is gone."""
    kept, there = [], excuses().keys() - found.keys()
    for line in EXCUSES.read_text().splitlines():
        name = line.split("`")[1] if line.startswith("- `") else ""
        new = found.get(name, name)
        if not name or (new and (name == new or new not in there)):
            kept.append(line.replace(name, new) if name else line)
    EXCUSES.write_text("\n".join(kept) + "\n")


def table(found: dict[str, dict[str, Any]], all_of: Counter[str]) -> str:
    """The score of every file, in Markdown."""
    excused = excuses()
    lines = [
        "| file | mutants | tried | killed | no test can notice | survived | score |",
        "| --- " + "| ---: " * 6 + "|",
    ]
    total: Counter[str] = Counter()
    for short in TESTED:
        own = {name: r for name, r in found.items() if name.partition(":")[0] == path_of(short)}
        if not own:
            continue
        count = Counter(
            "excused"
            if r["status"] == "survived" and excused.get(name) == r["change"]
            else {"timeout": "killed"}.get(r["status"], r["status"])
            for name, r in own.items()
        )
        count["tried"], count["all"] = len(own), all_of[short]
        total += count
        lines.append(_line(f"`{short}`", count))
    return "\n".join([*lines, _line("**all**", total)])


def _line(name: str, count: Counter[str]) -> str:
    score = 100 * count["killed"] / max(1, count["killed"] + count["survived"])
    return (
        f"| {name} | {count['all']:,} | {count['tried']:,} | {count['killed']:,} | {count['excused']:,} | {count['survived']:,} "
        f"| {score:.0f} % |"
    )


def survivors(found: dict[str, dict[str, Any]]) -> list[str]:
    """One line for each survivor that is not explained."""
    excused = excuses()
    return [
        f"- `{name}` `{r['change']}` line {r['line']}, {r['tests']} tests"
        for name, r in sorted(found.items())
        if r["status"] == "survived" and excused.get(name) != r["change"]
    ]


def main() -> None:
    """Read the options, run the mutants, and print the table."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--module", action="append", help="part of a file's path; may be given several times")
    options.add_argument("--sample", type=int, help="so many mutants of each file, drawn at random; by default all")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--results", type=Path, default=ROOT / ".mutants" / "results.json")
    options.add_argument("--fresh", action="store_true", help="forget earlier results")
    options.add_argument("--survivors", action="store_true", help="run those that survived again")
    options.add_argument("--longest", type=float, default=LONGEST, help="seconds of tests of one file for each mutant")
    options.add_argument("--show", action="store_true", help="only show what is known")
    options.add_argument(
        "--tidy", action="store_true", help="only rename in survivors.md what moved, and leave out what is gone"
    )
    asked = options.parse_args()
    if asked.tidy:
        tidy(moved := stale())
        print(*(f"{name} -> {new or 'gone'}" for name, new in moved.items()), sep="\n")
        return
    shorts = [s for s in TESTED if asked.module is None or any(part in s for part in asked.module)]
    if asked.fresh:
        asked.results.unlink(missing_ok=True)
        for folder in asked.results.parent.glob("learnt-*"):
            shutil.rmtree(folder)
    results = Results.read(asked.results)
    every = {s: mutants(ROOT, path_of(s), PARTS.get(s)) for s in shorts}
    drawn = {s: _drawn(found, asked.sample, f"{asked.seed} {s}") for s, found in every.items()}
    if asked.survivors:
        drawn = {s: [m for m in found if _survived(results.found.get(m.name), m)] for s, found in every.items()}
    if not asked.show:
        _run(drawn, results, asked.jobs, again=asked.survivors, longest=asked.longest)
    shown = every if asked.sample is None else drawn
    wanted = {m.name: results.found[m.name] for found in shown.values() for m in found if m.name in results.found}
    print(table(wanted, Counter({s: len(found) for s, found in every.items()})))
    print("\nSurvivors that are not explained:", *survivors(wanted), sep="\n")


def _drawn(found: list[Mutant], sample: int | None, seed: str) -> list[Mutant]:
    """So many of them at random, in the order of the file; a larger sample has those of a smaller one."""
    order = list(range(len(found)))
    random.Random(seed).shuffle(order)
    return [found[k] for k in sorted(order[:sample])]


def _run(drawn: dict[str, list[Mutant]], results: Results, jobs: int, *, again: bool, longest: float) -> None:
    """Learn what the tests of each group of files do, then run its mutants."""
    warm()
    groups: dict[tuple[bool, tuple[str, ...]], list[str]] = {}
    for short in drawn:
        groups.setdefault((path_of(short) in COMPILED, TESTED[short]), []).append(short)
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies = [make_copy(Path(folder) / str(k)) for k in range(jobs)]
        for (plain, _), shorts in groups.items():
            todo = [(m, s) for s in shorts for m in drawn[s] if _is_due(results.found.get(m.name), m, again)]
            if not todo:
                continue
            begun = time.monotonic()
            known = learn_tests(copies, shorts, plain, results.path.parent)
            learnt = time.monotonic()
            run_all(todo, known, copies, plain, results, longest)
            ended = time.monotonic()
            print(
                f"{', '.join(shorts)}: {len(known.seconds)} tests learnt in {learnt - begun:.0f} s, {len(todo)} mutants in "
                f"{ended - learnt:.0f} s ({60 * len(todo) / (ended - learnt):.0f} a minute)",
                flush=True,
            )


def _is_due(known: dict[str, Any] | None, mutant: Mutant, again: bool) -> bool:
    return known is None or known["change"] != mutant.change or (again and _survived(known, mutant))


def _survived(known: dict[str, Any] | None, mutant: Mutant) -> bool:
    """Whether it did, and nobody has said why."""
    return known is not None and known["status"] == "survived" and excuses().get(mutant.name) != mutant.change


if __name__ == "__main__":
    main()
