"""Policies as C headers: they answer as the policy does, to the last bit, everywhere it answers."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import struct
import subprocess
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

import acegames as ace
import oracle
import random_games
from acegames.files import c_header
from acegames.files.plain_policy import plain_policy
from acegames.model.random_costs import RandomCost
from acegames.safety import space as spaces
from command_line import answer, refused, run
from games import solo

COMPILER, COMPILER_CPP = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"), shutil.which("c++")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-Wconversion"]
needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
CONCEPTS = (ace.CE(), ace.CCE(), ace.Nash(), ace.CCE("egalitarian"))
BEYOND = 2  # whole units around what can be spent that are asked for as well


def corridor(budget, costs=(2, -1, 0)):
    """One player moves a stock up and down, with outcomes that differ."""
    spent = dict(zip(("up", "down", "stay"), costs, strict=True))
    return solo(
        lambda t, s, a: [(0.5, "x", {"stock": spent[a]}), (0.5, "y", {"stock": costs[2]})],
        reward=lambda t, s, a: float(a == "up") + 0.5 * float(s == "x") * float(a == "down"),
        actions=tuple(spent),
        horizon=5,
        initial="x",
        budget={"stock": budget},
    )


def slack(limit=40):
    """A long walk with a budget that binds late or never: most cumulative costs share an answer."""
    rng = np.random.default_rng(5)
    gains = rng.normal(size=(2, 2, 2, 2))
    return ace.MarkovGame.from_functions(
        players=["p", "q"],
        actions=lambda t, s: [[0, 1], [0, 1]],
        outcomes=lambda t, s, a: [(0.5, 1 - s, {"c": sum(a), "d": a[1]}), (0.5, s, {"c": 3 * a[0], "d": a[1]})],
        reward=lambda t, s, a: gains[(s, *a)],
        horizon=9,
        initial={0: 0.5, 1: 0.5},
        budget={"c": limit, "d": [float("inf")] * 8 + [7]},
    )


def drawn():
    costs = {"x": stats.uniform(0.1, 0.5), "y": -0.1618033988749895}
    return solo(
        lambda t, s, a: [(1.0, s, costs[a])], reward=lambda t, s, a: float(a == "x"), horizon=4, budget={"c": 0.9}
    )


def solved():
    """Many kinds of policies."""
    rng = np.random.default_rng
    small = [oracle.random_game(rng(k)) for k in range(16)] + [random_games.changing_game(rng(k)) for k in range(8)]
    games = [game for game in small if ace.feasibility(game).feasible]
    results = []
    for k, game in enumerate(games):
        try:
            results.append(ace.solve(game, CONCEPTS[k % 4]).policy)
        except ace.NoEquilibrium:
            results.append(ace.solve(game, ace.CE()).policy)
    fine = corridor(Fraction(1, 2), [Fraction(1, 7), Fraction(-1, 3), Fraction(0)])
    results += [
        ace.solve(corridor(ace.between(-1, 3))).policy,
        ace.solve(corridor(ace.reservoir(4, start=3, reserve=1))).policy,
        ace.solve(corridor([1, 2, float("inf"), 3, 2])).policy,
        ace.solve(corridor(ace.almost_sure(1))).policy,
        ace.solve(fine, epsilon=0.5).policy,
        ace.solve(fine, epsilon=0.5, rounding="up").policy,
        ace.solve(corridor(ace.reservoir(1, start=0.7), [0.31, -0.17, 0.0]), epsilon=0.3).policy,
        # in floats less than 29 times 0.01, and more than 7 times
        ace.solve(corridor(0.5, [0.29, -0.01, 0.07])).policy,
        ace.solve(corridor(8, [1.1, -0.1, 0.333]), epsilon=0.5, rounding="up").policy,
        ace.solve(drawn(), epsilon=0.3).policy,
        ace.solve(ace.catalog.get("electric_fleet"), ace.CE()).policy,
        ace.solve(slack()).policy,
        ace.solve(slack(9), keep_values=False).policy,
        ace.solve(ace.catalog.get("medium_access"), ace.Nash()).policy,
    ]
    with pytest.MonkeyPatch.context() as patch:  # as where boxes are too large for it
        patch.setattr(spaces, "DENSE_IF_BELOW", 0)
        patch.setattr(spaces, "DENSE_OCCUPANCY", 0)
        linked = [ace.solve(corridor(ace.between(low, 3))).policy for low in (-1, -2)]
    assert all(policy.reached.sums is not None for policy in linked)
    results += linked
    unlisted = [replace(p, reached=None) for p in results[-14::2] if p.reached is not None]
    return [*results, *unlisted]


@pytest.fixture(scope="module")
def policies():
    return solved()


def asked(policy, most=3000):
    """Situations to ask for: all that the layers may hold and what lies around, as (t, states (Q,), totals (Q, M))."""
    spaces = [layer.space for layer in policy.layers]
    if not policy.constraints:
        ends = []
    else:
        low = np.min([s.least.min(axis=0) for s in spaces], axis=0) - BEYOND
        high = np.max([s.most.max(axis=0) for s in spaces], axis=0) + BEYOND
        ends = [range(a, b + 1) for a, b in zip(low.tolist(), high.tolist(), strict=True)]
    every = np.array(list(itertools.product(range(len(policy.states)), *ends)), dtype=np.int64)
    for t in range(policy.horizon):
        here = every
        if len(every) > most:  # those that can occur, and some others
            known = np.flatnonzero(policy.internals.pairs(t, every[:, 0], every[:, 1:]) >= 0)
            others = np.random.default_rng(t).integers(len(every), size=most // 4)
            here = every[np.unique(np.concatenate([known[:: max(1, len(known) // most)], others]))]
        yield t, np.ascontiguousarray(here[:, 0]), np.ascontiguousarray(here[:, 1:])


# -- C --------------------------------------------------------------------------------------------------------------

PROGRAM = r"""
static void answer_NAME(FILE *in)
{
    int64_t t, state, spent[UPPER_CONSTRAINTS + 1], m, k, i, queries, bits;
    double uniform;
    if (fscanf(in, "%" SCNd64, &queries) != 1) abort();
    while (queries--) {
        if (fscanf(in, "%" SCNd64 "%" SCNd64 "%lf", &t, &state, &uniform) != 3) abort();
        for (m = 0; m < UPPER_CONSTRAINTS; m++) if (fscanf(in, "%" SCNd64, &spent[m]) != 1) abort();
        k = NAME_find(t, state, spent);
        if (k < 0) { printf("-\n"); if (NAME_act(t, state, spent, uniform) != -1) abort(); continue; }
        for (m = NAME_support[NAME_answer[k]]; m < (int64_t)NAME_support[NAME_answer[k] + 1]; m++) {
            for (i = 0; i < UPPER_PLAYERS; i++) printf("%" PRId64 ",", NAME_action(NAME_played[m], i));
            memcpy(&bits, &NAME_probability[m], 8);
            printf("%" PRId64 " ", bits);
            if (NAME_chance(t, state, spent, NAME_played[m]) != NAME_probability[m]) abort();
        }
        m = NAME_act(t, state, spent, uniform);
        for (i = 0; i < UPPER_PLAYERS; i++) printf("%" PRId64 ",", NAME_action(m, i));
        printf("\n");
    }
}
"""


COUNTING = r"""
static void count_NAME(FILE *in)
{
    int64_t spent[UPPER_CONSTRAINTS + 1], units[UPPER_CONSTRAINTS + 1], m, steps;
    double cost;
    NAME_begin(spent);
    if (fscanf(in, "%" SCNd64, &steps) != 1) abort();
    while (steps--) {
        for (m = 0; m < UPPER_CONSTRAINTS; m++) {
            if (fscanf(in, "%lf", &cost) != 1) abort();
            if (!NAME_count(m, cost, &units[m])) abort();
        }
        if (!NAME_add(spent, units)) abort();
        for (m = 0; m < UPPER_CONSTRAINTS; m++) printf("%" PRId64 " ", spent[m]);
        printf("\n");
    }
    for (m = 0; m < UPPER_CONSTRAINTS; m++) {
        if (NAME_count(m, 0.0 / 0.0, units) || (NAME_rule[m] != UPPER_IGNORED && NAME_count(m, 1e300, units))) abort();
        printf("%d ", NAME_count(m, 0.123456789, units));
    }
    printf("\n");
}
"""


@pytest.fixture(scope="module")
def program(policies, tmp_path_factory):
    """One program that has the headers of all policies: `answer` or `count` says what it does with each."""
    folder = tmp_path_factory.mktemp("headers")
    source = "".join(f"#include <{x}.h>\n" for x in ("stdio", "stdlib", "string", "inttypes"))
    main = dict.fromkeys(("answer", "count"), "")
    for k, policy in enumerate(policies):
        policy.export(folder / f"p{k}.h")
        source += f'#include "p{k}.h"\n' + (PROGRAM + COUNTING).replace("NAME", f"p{k}").replace("UPPER", f"P{k}")
        main = {what: text + f"        {what}_p{k}(stdin);\n" for what, text in main.items()}
    parts = f"    if (argc > 1) {{\n{main['count']}    }} else {{\n{main['answer']}    }}\n"
    return compiled(folder, f"{source}int main(int argc, char **argv)\n{{\n    (void)argv;\n{parts}    return 0;\n}}\n")


def said(program, questions, *words):
    done = subprocess.run([program, *words], input="\n".join(questions), capture_output=True, text=True)
    assert done.returncode == 0
    return done.stdout.splitlines()


def compiled(folder, source, *flags):
    """A program, which is run by its path; warnings are errors."""
    (folder / "main.c").write_text(source)
    made = [COMPILER, "-std=c99", *STRICT, *flags, str(folder / "main.c"), "-o", str(folder / "main")]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    return folder / "main"


def expected(policy, t, state, total, uniform):
    """What a look-up must print for each question."""
    known = policy.internals.pairs(t, state, total) >= 0
    ptr, row, prob = policy.rows(t, state[known], total[known])
    played = ["".join(f"{a}," for a in own) for own in policy.layers[t].action[row].tolist()]
    words = [f"{own}{bits} " for own, bits in zip(played, prob.view(np.int64).tolist(), strict=True)]
    drawn = [
        b + min(int(np.searchsorted(np.cumsum(prob[b:e]), u, "right")), e - b - 1)
        for b, e, u in zip(ptr[:-1], ptr[1:], uniform[known], strict=True)
    ]
    said = iter("".join(words[b:e]) + played[d] for b, e, d in zip(ptr[:-1], ptr[1:], drawn, strict=True))
    return [next(said) if here else "-" for here in known]


@needs_compiler
def test_a_header_answers_as_the_policy_does(policies, program):
    questions, answers = [], []
    rng = np.random.default_rng(0)
    for policy in policies:
        rows = []
        for t, state, total in asked(policy):
            uniform = rng.random(len(state))
            answers += expected(policy, t, state, total, uniform)
            rows += [
                f"{t} {s} {u!r} {' '.join(map(str, c))}"
                for s, u, c in zip(state.tolist(), uniform.tolist(), total.tolist(), strict=True)
            ]
        outside = [(-1, 0), (policy.horizon, 0), (0, -1), (0, len(policy.states)), (2**62, 2**62)]
        rows += [f"{t} {s} 0.5 {'0 ' * len(policy.constraints)}" for t, s in outside]
        answers += ["-"] * len(outside)
        questions += [str(len(rows)), *rows]
    result = said(program, questions)
    assert len(result) == len(answers) > 20_000
    assert [x == "-" for x in result] == [x == "-" for x in answers]
    assert sum(x != "-" for x in result) > 3_000
    assert result == answers


@needs_compiler
def test_a_header_counts_as_the_policy_does(policies, program):
    """Each cost of the game, read from a float, as it is or rounded, in whole units; reservoirs are never more than full."""
    questions, answers, rules = [], [], set()
    for policy in policies:
        tracker, number = policy.tracker, len(policy.constraints)
        rules |= {(rule and rule.direction, reservoir is None) for rule, reservoir in rules_of(tracker)}
        near = [{float(middle(c)): middle(c) for c in costs} for costs in policy.game.cost_values]
        steps = list(zip(*(list(itertools.islice(itertools.cycle(own), 12)) for own in near), strict=True))
        questions += [str(len(steps)), *(" ".join(map(repr, step)) for step in steps)]
        total = tracker.start()
        for step in steps:
            total = tracker.add(total, [own[x] for own, x in zip(near, step, strict=True)])
            answers.append("".join(f"{x} " for x in total))
        answers.append("".join(f"{int(counts(policy, m, 0.123456789))} " for m in range(number)))
    assert said(program, questions, "count") == answers
    assert rules >= {(None, True), (None, False), ("down", True), ("up", True), ("down", False)}


def rules_of(tracker):
    nothing = (None,) * len(tracker.units)
    return zip(tracker.rounding or nothing, tracker.reservoirs or nothing, strict=True)


def middle(cost):
    return (cost.lower + cost.upper) / 2 if isinstance(cost, RandomCost) else cost


def counts(policy, m, cost):
    try:
        policy.tracker.whole([cost if k == m else 0 for k in range(len(policy.constraints))])
    except ace.InvalidOption:
        return False
    return True


@needs_compiler
def test_the_program_on_the_page_runs(tmp_path):
    page = (Path(__file__).parents[2] / "docs" / "howto" / "run-without-acegames.md").read_text()
    ace.solve(ace.catalog.get("intersection")).policy.export(tmp_path / "policy.h")
    program = compiled(tmp_path, re.search(r"```c\n(.*?)```", page, flags=re.DOTALL)[1])
    done = subprocess.run([program], capture_output=True, text=True)
    assert done.returncode == 0
    assert [line.split(":")[0] for line in done.stdout.splitlines()] == [f"t={t} dry" for t in range(6)]


HOSTILE = [
    '"""); import os; os.abort(); ("""',
    "'; import os; os.abort(); '",
    '");abort();("',
    "*/ abort(); /*",
    "??/\\",
    "??=define x",
    "a\nb\r\n\tc\\",
    "\\x41\\101\\",
    "ü\u202e\U0001f916",
    "name_find NAME_HORIZON",
    "{value!a} {0} %s %d",
    "#include <x>",
    "//",
    "\x01\x7f",
    ("deep", (1, None, "x\n")),
    -3,
]


def hostile(labels=HOSTILE):
    return ace.MarkovGame.from_functions(
        players=[labels[0], labels[4]],
        actions=lambda t, s: [labels[:5], labels[5:9]],
        outcomes=lambda t, s, a: [(1.0, labels[(labels.index(s) + labels.index(a[0]) + 1) % len(labels)], 1)],
        reward=lambda t, s, a: [labels.index(a[0]) + 0.1, labels.index(a[1])],
        horizon=4,
        initial=dict.fromkeys(labels, 1 / len(labels)),
        budget={labels[3]: 4},
    )


@needs_compiler
def test_labels_are_data_in_c(tmp_path):
    policy = ace.solve(hostile()).policy
    policy.export(tmp_path / "p.h")
    assert (tmp_path / "p.h").read_bytes().isascii()
    source = (
        '#include <stdio.h>\n#include "p.h"\nint main(void)\n{\n    int64_t k;\n'
        "    for (k = 0; k < P_STATES; k++) { fputs(p_state_labels[k], stdout); putchar(0); }\n"
        "    for (k = 0; k < P_PLAYERS; k++) { fputs(p_player_labels[k], stdout); putchar(0); }\n"
        "    for (k = 0; k < p_action_first[P_PLAYERS]; k++) { fputs(p_action_labels[k], stdout); putchar(0); }\n"
        "    fputs(p_constraint_labels[0], stdout); putchar(0);\n    fputs(P_GAME, stdout);\n    return 0;\n}\n"
    )
    for flag in ("-trigraphs", "-O0"):
        said = subprocess.run([compiled(tmp_path, source, flag)], capture_output=True).stdout.decode()
        *labels, digest = said.split("\0")
        own = [*policy.states, *policy.players, *itertools.chain(*policy.actions), *policy.constraints]
        assert labels == [x if isinstance(x, str) else json.dumps(x, ensure_ascii=False) for x in own]
        assert digest == policy.game_digest


# -- data files, options, and what is refused -----------------------------------------------------------------------

OPENING = r"""
#include <stdio.h>
#include <stdlib.h>
#include "p.h"
int main(int argc, char **argv)
{
    static int64_t content[100000];
    int64_t spent[P_CONSTRAINTS + 1];
    FILE *file = fopen(argc > 1 ? argv[1] : "", "rb");
    size_t size = file == NULL ? 0 : fread(content, 1, sizeof content, file);
    p_begin(spent);
    if (p_find(0, p_start[0], spent) != -1) abort(); /* nothing is open yet */
    if (p_open((const char *)(const void *)content + 1, size) || p_open(NULL, size)) abort();
    if (!p_open(content, size)) return 3;
    printf("%a\n", p_chance(0, p_start[0], spent, p_act(0, p_start[0], spent, 0)));
    return 0;
}
"""


@needs_compiler
def test_a_data_file_is_opened_and_held_against_its_header(tmp_path):
    policy = ace.solve(slack()).policy
    policy.export(tmp_path / "p.h", data=True)
    program, content = compiled(tmp_path, OPENING), (tmp_path / "p.bin").read_bytes()
    done = subprocess.run([program, tmp_path / "p.bin"], capture_output=True, text=True)
    start, spent = policy.states[policy.initial[0][0]], policy.tracker.spent(policy.tracker.start())
    assert done.returncode == 0
    assert float.fromhex(done.stdout) == next(iter(policy.distribution(0, start, spent).values()))
    for other in (content[:-8], content + bytes(8), b"x" + content[1:], content[:40] + b"\0" + content[41:], b""):
        (tmp_path / "other.bin").write_bytes(other)
        assert subprocess.run([program, tmp_path / "other.bin"]).returncode == 3
    head = struct.unpack("<8sqqq32s", content[:64])
    assert head[:4] == (b"acepolic", 0x0102030405060708, len(content), 0)


@pytest.mark.skipif(COMPILER_CPP is None, reason="no C++ compiler on this machine")
def test_a_header_is_also_cpp_and_has_its_own_names(tmp_path):
    policy = ace.solve(ace.catalog.get("intersection")).policy
    policy.export(tmp_path / "one.h", name="Left")
    policy.export(tmp_path / "2 robots.h")
    policy.export(tmp_path / "three.h", data=True)
    source = "".join(f'#include "{name}.h"\n' for name in ("one", "2 robots", "three", "one"))
    (tmp_path / "main.cpp").write_text(
        f"{source}int main() {{ int64_t spent[1]; Left_begin(spent); policy_2_robots_begin(spent); three_begin(spent);\n"
        "return Left_act(0, 0, spent, 0.5) == policy_2_robots_act(0, 0, spent, 0.5) ? 0 : 1; }\n"
    )
    made = [COMPILER_CPP, "-std=c++11", *STRICT, str(tmp_path / "main.cpp"), "-o", str(tmp_path / "main")]
    done = subprocess.run(made, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:4000]
    assert subprocess.run([tmp_path / "main"]).returncode == 0


def test_a_policy_file_without_its_game_serves_too(tmp_path):
    policy = ace.solve(slack(), ace.CE()).policy
    policy.save(tmp_path / "policy.ace")
    alone = ace.Policy.load(tmp_path / "policy.ace")
    assert alone.game is None
    alone.export(tmp_path / "alone.h")
    header = (tmp_path / "alone.h").read_text()
    assert "#define ALONE_BUDGET_TIMES INT64_C(0)" in header and f'#define ALONE_GAME "{policy.game_digest}"' in header
    assert "budget" not in plain_policy(alone)
    budget = plain_policy(policy)["budget"]
    assert budget.shape == (9, 2) and budget[0].tolist() == [40, 2**63 - 1] and budget[-1].tolist() == [40, 7]


@pytest.fixture
def policy():
    return ace.solve(ace.catalog.get("intersection")).policy


@pytest.mark.parametrize(
    ("path", "options", "word"),
    [
        ("p.txt", {}, r"p\.txt: the ending must be one of \.csv, \.parquet, \.h$"),
        ("p.ace", {}, r"policy\.save\(path\) writes a policy file"),
        ("p.csv", {"name": "x"}, r"name: goes with a file that ends in \.h"),
        ("p.csv", {"data": True}, r"data: goes with a file that ends in \.h$"),
        ("p.h", {"name": "2x"}, "name: got '2x', must begin with a letter"),
        ("p.h", {"name": "x; int y"}, "name: got"),
        ("p.h", {"name": "x" * 33}, "at most 32"),
        ("p.py", {}, r"p\.py: the ending must be one of"),
        ("p.h", {"data": 3}, "data"),
        ("p.h", {"progress": 3}, "progress"),
    ],
)
def test_what_is_refused_before_anything_is_written(policy, tmp_path, path, options, word):
    with pytest.raises(ace.InvalidOption, match=word):
        policy.export(tmp_path / path, **options)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        (("a\0b", "c"), "NUL"),
        (("x" * 5000, "c"), "5000 bytes, in C at most 4000"),
        ((1, "1"), "look alike"),
        ((frozenset("a"), "c"), "cannot be written to a file"),
        (("\ud800", "c"), "not valid Unicode"),
    ],
)
def test_labels_that_cannot_be_written_are_named(tmp_path, labels, word):
    one = np.ones((2, 1, 2)) / 2
    game = ace.MarkovGame.from_arrays(one, np.ones((2, 1, 1)), horizon=2, states=labels, initial=labels[0])
    for data in (False, True):
        with pytest.raises((ace.InvalidOption, ace.InvalidGame), match=word):
            ace.solve(game).policy.export(tmp_path / "p.h", data=data)
    assert list(tmp_path.iterdir()) == []


def test_a_policy_that_is_too_long_for_a_source_file_is_refused_with_its_size(policy, tmp_path, monkeypatch):
    numbers = sum(array.size for array in plain_policy(policy).values())
    for most in (10, numbers - 1):  # before and after its situations were listed
        monkeypatch.setattr(c_header, "EMBEDDED", most)
        with pytest.raises(ace.TooLarge, match=rf"at least [\d,]+ numbers, .* at most {most}; .*data=True"):
            policy.export(tmp_path / "p.h")
    assert list(tmp_path.iterdir()) == []
    policy.export(tmp_path / "p.h", data=True)
    monkeypatch.setattr(c_header, "EMBEDDED", numbers)
    policy.export(tmp_path / "q.h")


def test_the_program_exports_code(policy, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    ace.solve(ace.catalog.get("intersection")).save("s.ace")

    run("export", "s.ace", "-o", "policy.h")
    assert ace.Solution.load("s.ace").export("own.h", name="policy") == policy.export("other.h", name="policy")
    assert (tmp_path / "policy.h").read_bytes() == (tmp_path / "own.h").read_bytes()
    text = " ".join(run("export", "s.ace", "-o", "two.h", "--data", "--name", "robot").stdout.split())
    assert "two.bin was written too: it holds the arrays (" in text and "iB)" in text
    assert "robot_find" in (tmp_path / "two.h").read_text()
    told = answer("export", "s.ace", "-o", "m.h", "--data")
    assert (told["what"], told["data"], told["file"]) == ("policy", "m.bin", "m.h")
    assert told["lines"] == len((tmp_path / "m.h").read_text().splitlines())
    assert "give a solution: acegames solve intersection" in refused("export", "intersection", "-o", "g.h")
    assert "leave out --game" in refused("export", "s.ace", "-o", "g.h", "--game")
    assert "--name: got 'a b'" in refused("export", "s.ace", "-o", "p.h", "--name", "a b")
    assert "--name: goes with a file that ends in .h" in refused("export", "s.ace", "-o", "p.csv", "--name", "x")
    assert "policy.h: a C header, not a solution" in refused("verify", "policy.h")
    monkeypatch.setattr(c_header, "EMBEDDED", 10)
    assert "(--data)" in refused("export", "s.ace", "-o", "p.h", code=5)
    with pytest.raises(ace.InvalidOption, match=r"a policy is an archive, not a C header; policy\.export"):
        policy.save("policy.h")
    with pytest.raises(ace.InvalidOption, match=r"a policy is an archive, not a \.py file"):
        policy.save("policy.py")
