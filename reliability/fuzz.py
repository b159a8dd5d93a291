"""Feed broken and hostile files to every loader and to the command line, and count what goes wrong.

    python reliability/fuzz.py yaml --seconds 900            # coverage-guided where atheris is installed (pip install atheris)
    python reliability/fuzz.py all --seconds 60 --blind      # every kind in turn, by chance alone

A file may be refused by an error of acegames or of the system. Anything else is a *crash*; more than ten seconds are a *hang*; more than
1.5 GiB of memory is a *bomb*. Files that did one of these are kept in --found, to be added to `tests/corpus` once mended.

Fuzzing starts from the files of `tests/corpus`. Archives, checkpoints and proofs are changed as documents, their arrays written out as
lists, and packed anew with their checksums before they are loaded: what is tested is the reading, not the checksum.
"""

from __future__ import annotations

import argparse
import base64
import csv
import hashlib
import importlib.util
import io
import json
import math
import os
import random
import resource
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
import zipfile
import zlib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CORPUS = ROOT / "tests" / "corpus"
KINDS = ("yaml", "json", "game", "plain", "solution", "policy", "checkpoint", "proof", "nfg", "table", "cli")
DOCUMENTS = ("json", "game", "plain", "solution", "policy", "checkpoint", "proof", "table", "cli")
VERBS = ("check", "frontier", "reduce", "solve", "verify", "simulate", "report")
EXIT_CODES = (0, 1, 2, 3, 4, 5)
HANG = 10  # seconds
MEMORY = 1536 * 2**20
LONGEST = 20_000  # bytes of a changed file
INSTRUMENTED = ("model", "system", "files", "policy", "solving.solution", "concepts", "engines.checkpoint")

TEXTS = (
    *(
        "",
        "*",
        "inf",
        "-inf",
        "nan",
        "1/3",
        "1/0",
        "1e999",
        "1e999999999",
        "0x1",
        "../x.npz",
        "/etc/passwd",
        "\x00",
        "\x1b[31m",
    ),
    *(
        "</script>",
        "\u2028",
        "\u202e",
        "\ud800",
        "x" * 5000,
        "9" * 5000,
        "1/" + "9" * 3000,
        "0..5",
        "5..0",
        "0..999999999",
        "NaN",
        "~",
    ),
    *(
        "any",
        "next",
        "cost",
        "state",
        "at_end",
        "distribution",
        "uniform",
        "binom",
        "truncnorm",
        "CE",
        "Nash",
        "down",
        "<i8",
        "<f8",
        "|b1",
    ),
)
NUMBERS = (
    0,
    1,
    -1,
    2,
    3,
    255,
    2**31,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**30,
    2**61 - 1,
    0.5,
    -0.0,
    1e-300,
    1e308,
    1e-9,
    1_000_000,
    10**12,
)
OTHERS = (None, True, False, [], {}, [[]], [{}], {"any": []}, {"distribution": "uniform"}, {"at_end": 1}, [0] * 70)


# -- changing documents


def places(value, here=()):
    """Every place in a document, without the inside of long lists of numbers but for some."""
    yield here
    items = list(value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ())
    for key, part in items:
        yield from places(part, (*here, key))


def at(document, path):
    """What is at a place."""
    for key in path:
        document = document[key]
    return document


def copied(document):
    """A document that can be changed without changing where it came from."""
    return json.loads(json.dumps(document))


def changed(document, rng):
    """A copy of a document with a few things in it changed."""
    document = copied(document)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 6))):
        found = list(places(document))[1:]
        if not found:
            return copied(rng.choice(OTHERS))
        path = rng.choice(found)
        parent, key = at(document, path[:-1]), path[-1]
        kind = rng.randrange(8)
        if kind == 0:
            del parent[key]
        elif kind == 1:
            parent[key] = copied(at(document, rng.choice(found)))
        elif kind == 2 and isinstance(parent, list):
            parent.insert(key, copied(parent[rng.randrange(len(parent))]))
        elif kind == 3 and isinstance(parent, dict):
            parent[rng.choice(TEXTS)] = parent.pop(key)
        elif kind == 4:
            parent[key] = [parent[key]]
        else:
            parent[key] = other(parent[key], rng)
    return document


def other(value, rng):
    """Something else than a value, near it or far from it."""
    if isinstance(value, (int, float)) and not isinstance(value, bool) and rng.random() < 0.5:
        return rng.choice(
            (value + 1, value - 1, -value, value * 2, value / 2, float(value), str(value), f"{value}/7", value * 10**9)
        )
    if isinstance(value, str) and value and rng.random() < 0.5:
        k = rng.randrange(len(value))
        return rng.choice((value[:k], value[k:], value[:k] + rng.choice(TEXTS) + value[k:], value * 3, value.upper()))
    return copied(rng.choice((*TEXTS, *NUMBERS, *OTHERS)))


def changed_bytes(content, rng):
    """Bytes with a few changed, without coverage to guide it."""
    content = bytearray(content)
    for _ in range(rng.choice((1, 2, 4, 16))):
        k = rng.randrange(len(content) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            content[k : k + rng.choice((1, 4, 40))] = b""
        elif kind == 1:
            content[k:k] = rng.choice(TEXTS).encode("utf-8", "surrogatepass")
        elif kind == 2:
            content[k:k] = content[k : k + rng.choice((1, 10, 100))] * rng.choice((1, 2, 50))
        elif k < len(content):
            content[k] = rng.randrange(256)
    return bytes(content)


def mutated(kind, content, rng, by_bytes):
    """A changed file of a kind: as a document where it is one, else as bytes."""
    if kind in DOCUMENTS and rng.random() < 0.9:
        try:
            return json.dumps(changed(json.loads(content), rng)).encode()
        except (ValueError, RecursionError):
            pass
    return by_bytes(content)


# -- from documents to files


def npy(entry):
    """One array of a document as an .npy member; shapes and types are taken as they are, right or wrong."""
    import numpy as np

    dtype, shape, data = entry
    flat = np.array(data, dtype=np.dtype(dtype))
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": dtype, "fortran_order": False, "shape": tuple(shape)})
    return stream.getvalue() + flat.tobytes()


def block_of(document):
    """The block of {"header": ..., "arrays": {name: [type, shape, entries]}}, checksums and digest made right."""
    import numpy as np

    from acegames.system.container import HEAD, MAGIC, PAGE

    told, data = [], b""
    for name, (dtype, shape, entries) in document["arrays"].items():
        told.append([name, dtype, *shape])
        data += np.array(entries, dtype=np.dtype(dtype)).tobytes()
        data += bytes(-len(data) % 8)
    content = json.dumps({**document["header"], "arrays": told}).encode()
    rest = content + b"".join(zlib.crc32(data[k : k + PAGE]).to_bytes(4, "little") for k in range(0, len(data), PAGE))
    lengths = struct.pack("<QQ", len(content), len(data))
    digest = hashlib.blake2b(lengths + rest, digest_size=32).digest()
    before = HEAD.pack(MAGIC, len(content), len(data), digest) + rest
    whole = before + bytes(-len(before) % 64) + data
    return whole + bytes(-len(whole) % 64)


def packed(document):
    """The file of {"header": ..., "arrays": {name: [type, shape, entries]}}: a block of a solution or a policy, else a zip archive."""
    if "header" in document and document["header"].get("format") in ("acegames-solution", "acegames-policy"):
        return block_of(document)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        if "header" in document:
            archive.writestr("header.json", json.dumps({**document["header"], "members": list(document["arrays"])}))
        for name, entry in document["arrays"].items():
            archive.writestr(f"{name}.npy", npy(entry))
    return stream.getvalue()


def as_entry(array):
    """An array in a document."""
    return [array.dtype.str, list(array.shape), array.ravel().tolist()]


def unpacked(path):
    """The document of an archive."""
    import numpy as np

    if not zipfile.is_zipfile(path):
        from acegames.system.container import read_block

        with open(path, "rb") as file:
            block = read_block(file, 0, str(path))
            block.load(file)
            return {"header": block.header, "arrays": {name: as_entry(array) for name, array in block.items()}}
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        header = {"header": json.loads(archive.read("header.json"))} if "header.json" in names else {}
        arrays = {}
        for name in names:
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(archive.read(name)))
                arrays[name.removesuffix(".npy")] = as_entry(array)
    return {**header, "arrays": arrays}


def proof_of(document):
    """The proof of {"header": ..., "data": base64}."""
    content = json.dumps(document["header"]).encode() + b"\n" + base64.b64decode(document["data"])
    return b"acegames-proof 1\n" + hashlib.sha256(content).hexdigest().encode() + b"\n" + content


def lines_of(rows):
    """The text of a table."""
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode("utf-8", "surrogatepass")


# -- loading


class Unfit(Exception):
    """The changed document cannot be made into a file at all."""


class Bomb(Exception):
    """A file asked for more memory than there is."""


class Loaders:
    """Loads files of every kind in one folder of its own."""

    def __init__(self, folder):
        import acegames as ace
        from acegames.system.container import read_block

        self.ace, self.folder = ace, Path(folder)
        self.read_block = read_block
        self.by_kind = {kind: getattr(self, f"_{kind}") for kind in KINDS}

    def load(self, kind, content):
        """Load one file; an error that is not one of acegames or of the system is a crash."""
        try:
            self.by_kind[kind](content)
        except (Unfit, OSError):
            pass
        except self.ace.AceError as error:
            if "not enough memory" in str(error):
                raise Bomb(str(error)) from None

    def _file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return path

    def _document(self, content, make):
        try:
            return make(json.loads(content))
        except MemoryError:
            raise
        except Exception as error:
            raise Unfit from error

    def _game_at(self, path):
        game = self.ace.load(path)
        repr(game)
        return game

    def _yaml(self, content):
        self._game_at(self._file("game.yaml", content))

    def _json(self, content):
        self._game_at(self._file("game.json", content))

    def _game(self, content):
        self._game_at(self._file("game.npz", self._document(content, packed)))

    _plain = _game

    def _solution(self, content):
        solution = self.ace.Solution.load(self._file("solution.ace", self._document(content, packed)))
        str(solution), repr(solution.stats)
        self.ace.verify(solution.game, solution.policy, solution.concept)
        self.ace.simulate(solution.game, solution.policy, episodes=3, rng=0)

    def _policy(self, content):
        policy = self.ace.Policy.load(self._file("policy.ace", self._document(content, packed)))
        policy.save(self.folder / "again.ace")

    def _checkpoint(self, content):
        game = self.ace.load(CORPUS / "yaml" / "chicken.yaml")
        folder = self.folder / "checkpoint"
        if not folder.exists():
            self.ace.solve(game, checkpoint=folder)
        run = next(folder.glob("run-*.layers"))
        whole = run.read_bytes()
        with open(run, "rb") as file:
            end = self.read_block(file, 0, "").end
            digest = self.read_block(file, end, "").header["run"]
        layers = self._document(content, lambda d: block_of({**d, "header": {**d["header"], "run": digest}}))
        run.write_bytes(whole[:end] + layers)
        self.ace.solve(game, checkpoint=folder)
        run.write_bytes(whole)

    def _proof(self, content):
        path = self._file("proof.txt", self._document(content, proof_of))
        spec = importlib.util.spec_from_file_location("ace_check", ROOT / "checker" / "ace_check.py")
        checker = sys.modules.get("ace_check") or importlib.util.module_from_spec(spec)
        if "ace_check" not in sys.modules:
            spec.loader.exec_module(checker)
            sys.modules["ace_check"] = checker
        before, sys.argv = sys.argv, ["ace_check.py", str(path)]
        try:
            with open(os.devnull, "w") as nowhere:
                out, sys.stdout = sys.stdout, nowhere
                try:
                    status = checker.main()
                finally:
                    sys.stdout = out
        finally:
            sys.argv = before
        if status not in (0, 1, 2):
            raise AssertionError(f"exit status {status}")

    def _nfg(self, content):
        self._game_at(self._file("game.nfg", content))

    def _table(self, content):
        """A game as a table, {"head": ..., "lines": [[...], ...]}, or a policy where the head is null."""
        from acegames.files import tables

        head, lines = self._document(content, lambda d: (d["head"], lines_of(d["lines"])))
        path = self._file("table.csv", lines)
        self._file("table.csv.json", json.dumps(head).encode())
        if head is None:
            tables.read_policy(path, self.ace.load(CORPUS / "yaml" / "chicken.yaml"))
        else:
            repr(tables.read_game(path))

    def _cli(self, content):
        """A verb on a changed file. A document {"verb": ..., "name": ..., "file": ...}."""
        from typer.testing import CliRunner

        from acegames.cli import app

        document = self._document(content, lambda d: d)
        if not isinstance(document, dict) or document.get("verb") not in VERBS:
            raise Unfit
        held = document.get("file")
        is_archive = isinstance(held, dict) and "arrays" in held
        body = self._document(json.dumps(held), packed) if is_archive else json.dumps(held).encode()
        suffix = (".ace" if "header" in held and "policy" in held["header"] else ".npz") if is_archive else ".json"
        path = self._file(f"file{suffix}", body)
        words = [document["verb"], str(path), *(["--json"] if document.get("json") else [])]
        words += ["-o", str(self.folder / "out.html")] if document["verb"] == "report" else []
        words += ["--episodes", "5"] if document["verb"] in ("report", "simulate") else []
        result = CliRunner().invoke(app, words)
        if result.exception is not None and not isinstance(result.exception, SystemExit):
            raise result.exception
        if result.exit_code not in EXIT_CODES:
            raise AssertionError(f"exit code {result.exit_code} of {words}")
        if "\x1b" in result.output:
            raise AssertionError("a control character was printed")


def seeds(kind):
    """The files from which fuzzing of a kind starts."""
    return [
        path.read_bytes()
        for path in sorted((CORPUS / kind).glob("*"))
        if path.is_file() and path.stat().st_size <= LONGEST
    ]


# -- running


class Recorder:
    """Runs files one by one, counts them, and keeps those that went wrong, one for each place in the code."""

    def __init__(self, kind, found, folder):
        self.kind, self.found, self.loaders = kind, Path(found), Loaders(folder)
        self.runs = 0
        self.crashes = {}

    def run(self, content):
        """Load one file."""
        self.runs += 1
        self.current(content)
        try:
            self.loaders.load(self.kind, content)
        except Exception as error:
            self.keep(content, error)
        if self.runs % 200 == 0:
            self.tell()

    def current(self, content):
        """Keep the file that is being loaded, in case it ends the process."""
        (self.found / f"{self.kind}.current").write_bytes(content)

    def keep(self, content, error):
        """Keep a file that went wrong."""
        last = [f for f in traceback.extract_tb(error.__traceback__) if "acegames" in f.filename][-1:]
        spot = (
            f"{type(error).__name__} at {Path(last[0].filename).name}:{last[0].lineno}"
            if last
            else type(error).__name__
        )
        if spot not in self.crashes:
            name = f"{self.kind}-{hashlib.sha256(content).hexdigest()[:12]}"
            (self.found / name).write_bytes(content)
            (self.found / f"{name}.why").write_text("".join(traceback.format_exception(error)))
        self.crashes[spot] = self.crashes.get(spot, 0) + 1

    def tell(self):
        """Write down what was counted so far."""
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        (self.found / f"{self.kind}.json").write_text(
            json.dumps({"runs": self.runs, "crashes": self.crashes, "memory": memory})
        )


def child(kind, found, seconds, seed, blind):
    """Fuzz in this process until the time is over; a hang or a bomb ends it, and the parent begins another."""
    os.environ["OPENBLAS_NUM_THREADS"] = os.environ["NUMBA_NUM_THREADS"] = "1"
    atheris = None
    if not blind and importlib.util.find_spec("atheris"):
        import atheris

        with atheris.instrument_imports(include=[f"acegames.{m}" for m in INSTRUMENTED]):
            import acegames  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        recorder = Recorder(kind, found, folder)
        for content in seeds(kind):
            recorder.run(content)
        used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        limit = MEMORY + (
            6 * 2**30 if kind in ("cli", "solution", "checkpoint") else 2**30
        )  # of addresses: threads and compilers reserve some
        resource.setrlimit(resource.RLIMIT_AS, (limit + used, limit + used))
        if atheris:
            guided(atheris, recorder, kind, found, seconds, seed)
        else:
            by_chance(recorder, kind, seconds, seed)


def guided(atheris, recorder, kind, found, seconds, seed):
    """Let libFuzzer choose which files to change, by the code that they reach."""

    def mutator(content, longest, number):
        rng = random.Random(number)
        return mutated(kind, content, rng, lambda c: atheris.Mutate(c, longest))[:longest]

    grown = Path(found) / f"{kind}.corpus"
    if not grown.exists():
        grown.mkdir(parents=True)
        for k, content in enumerate(seeds(kind)):
            (grown / f"seed{k}").write_bytes(content)
    options = [
        f"-max_total_time={seconds}",
        f"-timeout={HANG}",
        f"-rss_limit_mb={MEMORY // 2**20}",
        f"-seed={seed}",
        f"-max_len={LONGEST}",
    ]
    options += [f"-artifact_prefix={found}/{kind}-killed-", "-verbosity=0", "-detect_leaks=0", "-len_control=0"]
    atheris.Setup([sys.argv[0], *options, str(grown)], recorder.run, custom_mutator=mutator)
    try:
        atheris.Fuzz()
    finally:
        recorder.tell()


def by_chance(recorder, kind, seconds, seed):
    """Change the files of the corpus without looking at what they reach."""
    rng, known, end = random.Random(seed), seeds(kind), time.monotonic() + seconds
    while time.monotonic() < end:
        content = mutated(kind, rng.choice(known), rng, lambda c: changed_bytes(c, rng))
        signal.alarm(HANG)
        recorder.run(content)
        signal.alarm(0)
    recorder.tell()


def fuzz(kind, found, seconds, seed, blind):
    """Fuzz one kind in child processes; (runs, crashes by place, hangs, bombs)."""
    end, runs, crashes, hangs, bombs = time.monotonic() + seconds, 0, {}, 0, 0
    while (left := math.ceil(end - time.monotonic())) > 0:
        (found / f"{kind}.json").unlink(missing_ok=True)
        seed += 1
        words = [
            sys.executable,
            __file__,
            kind,
            "--child",
            "--found",
            str(found),
            "--seconds",
            str(left),
            "--seed",
            str(seed),
        ]
        done = subprocess.run(
            [*words, *(["--blind"] if blind else [])], capture_output=True, text=True, errors="replace"
        )
        told = found / f"{kind}.json"
        said = json.loads(told.read_text()) if told.exists() else {"runs": 0, "crashes": {}}
        runs += said["runs"]
        for spot, count in said["crashes"].items():
            crashes[spot] = crashes.get(spot, 0) + count
        if done.returncode == 0:
            continue
        bomb = "out-of-memory" in done.stderr or "MemoryError" in done.stderr
        hangs, bombs = hangs + (not bomb), bombs + bomb
        name = found / f"{kind}-{'bomb' if bomb else 'hang'}-{hangs + bombs}"
        if (found / f"{kind}.current").exists():
            shutil.copy(found / f"{kind}.current", name)
        name.with_suffix(".why").write_text(done.stderr[-20_000:])
        if not told.exists():
            print(done.stderr[-2000:], file=sys.stderr)
            break
    return runs, crashes, hangs, bombs


def main():
    """Fuzz what the words say; the exit status is 1 if anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("kind", choices=(*KINDS, "all"))
    parser.add_argument("--seconds", type=int, default=60, help="for each kind")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--found", type=Path, default=Path("fuzz-found"), help="folder for files that go wrong")
    parser.add_argument("--blind", action="store_true", help="do without coverage, also where atheris is installed")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    options.found.mkdir(parents=True, exist_ok=True)
    if options.child:
        child(options.kind, options.found, options.seconds, options.seed, options.blind)
        return 0
    bad = 0
    for kind in KINDS if options.kind == "all" else (options.kind,):
        if not seeds(kind):
            continue
        runs, crashes, hangs, bombs = fuzz(kind, options.found, options.seconds, options.seed, options.blind)
        print(
            f"{kind}: {runs:,} files, {sum(crashes.values())} crashes, {hangs} hangs, {bombs} bombs",
            *crashes,
            sep="\n  ",
            flush=True,
        )
        bad += len(crashes) + hangs + bombs
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
