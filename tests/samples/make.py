"""Writes a folder of sample files with whatever acegames is imported, and a manifest of what loading them must give.

    PYTHONPATH=CHECKOUT/src python tests/samples/make.py tests/samples/2026-11-15T1014-96c02ed

Run it with the code that is to be remembered, never again for the same folder: the samples show what that code wrote.
What the imported acegames cannot do yet is left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import acegames as ace

BY_HAND = """\
format: acegames-game
version: 1
players: [red, blue]
constraints: [risk]
horizon: 3
initial: [{state: road, probability: 0.5}, {state: lane, probability: 0.5}]
budget: {risk: [1, 2, .inf]}
actions: {red: [dare, yield], blue: [dare, yield]}
rules:
  - reward: [6, 6]
    next: lane
  - when: {state: road, action: {red: dare}}
    reward: {red: 7, blue: 2}
    outcomes: [{probability: 0.25, cost: {risk: "1/3"}}, {probability: 0.75, next: lane, cost: 0.1}]
  - when: {t: 1..2, state: {any: [road]}, action: ["*", dare]}
    legal: false
"""


def chicken() -> ace.MarkovGame:
    """Two drivers; daring together is a chance of risk."""
    pay = {("dare", "dare"): (0, 0), ("dare", "yield"): (7, 2), ("yield", "dare"): (2, 7), ("yield", "yield"): (6, 6)}
    return ace.MarkovGame.from_functions(
        name="chicken",
        players=["red", "blue"],
        horizon=2,
        initial="road",
        budget={"risk": 3},
        actions=lambda t, s: [("dare", "yield"), ("dare", "yield")],
        outcomes=lambda t, s, a: [(0.5, "road", 2 if a == ("dare", "dare") else 0), (0.5, "road", 0)],
        reward=lambda t, s, a: pay[a],
    )


def schedule() -> ace.MarkovGame:
    """Three players, two first states, labels of many kinds; refuelling; budgets that change with time, some infinite."""
    states = [("north", 1), ("süd", 2)]
    return ace.MarkovGame.from_functions(
        name="schedule",
        players=[1, "b", "c"],
        horizon=3,
        initial={states[0]: 0.25, states[1]: 0.75},
        budget={"fuel": [Fraction(3, 2), 1, 0.5], "noise": [float("inf"), 2, float("inf")]},
        actions=lambda t, s: [(0, 1), ("idle", "run"), (None, "turn") if s[1] == 1 else (None,)],
        legal=lambda t, s, a: not (t == 1 and a[0] == 1 and a[1] == "run"),
        outcomes=lambda t, s, a: [
            (0.5, states[(a[0] + t) % 2], {"fuel": 0.5 if a[1] == "run" else -0.25, "noise": a[0]}),
            (0.5, s, {"fuel": 0, "noise": 0}),
        ],
        reward=lambda t, s, a: [a[0] * (t + 1), float(a[1] == "run"), 0.125 * s[1] - a[0] / 3],
    )


def rover(cost: Any, budget: Any = 1) -> ace.MarkovGame:
    """One player that drives at a cost or rests."""
    return ace.MarkovGame.from_functions(
        name="rover",
        players=["rover"],
        horizon=2,
        initial="field",
        budget={"battery": budget},
        actions=lambda t, s: [("drive", "rest")],
        outcomes=lambda t, s, a: [(1.0, "field", {"battery": cost if a == ("drive",) else -0.1618033988749895})],
        reward=lambda t, s, a: [float(a == ("drive",))],
    )


def toll() -> ace.MarkovGame:
    """Three drivers, each of whom pays for itself; where rules can add, they do."""
    pay = {"road": 0.5, "lane": 0.25, "walk": 0}
    return ace.MarkovGame.from_functions(
        name="toll",
        players=["a", "b", "c"],
        horizon=2,
        initial="town",
        budget={"toll": 2},
        actions=lambda t, s: [tuple(pay)] * 3,
        outcomes=lambda t, s, a: [(1.0, "town", sum(pay[x] for x in a))],
        reward=lambda t, s, a: [4 * pay[x] for x in a],
    )


def samples() -> Iterator[tuple[str, Callable[[], ace.MarkovGame | ace.Policy | ace.Solution]]]:
    """Name of each file and what makes its content."""
    for suffix in ("npz", "yaml", "json"):
        yield f"chicken.{suffix}", chicken
        yield f"schedule.{suffix}", schedule
        yield f"toll.{suffix}", toll
        yield f"at-end.{suffix}", lambda: rover(1, ace.almost_sure(1))
        yield f"random-cost.{suffix}", lambda: rover(_beta())
    yield "ce.ace", lambda: ace.solve(chicken(), ace.CE())
    yield "cce.ace", lambda: ace.solve(schedule(), ace.CCE((1, 0.5, 2), floor=2.0))
    yield "sparse.ace", lambda: ace.solve(chicken(), ace.CCE("egalitarian"), engine=ace.LocalEngine(dense=False))
    yield "nash.ace", lambda: ace.solve(chicken(), ace.Nash())
    yield "rounded-down.ace", lambda: ace.solve(rover(0.7390851332151607), epsilon=0.25)
    yield "rounded-up.ace", lambda: ace.solve(rover(0.7390851332151607), epsilon=0.25, rounding="up")
    yield "random-cost.ace", lambda: ace.solve(rover(_beta()), epsilon=0.25)
    yield "discounted.ace", lambda: ace.solve(ace.discount(chicken(), 0.25, epsilon=1))
    yield "policy-ce.ace", lambda: ace.solve(chicken(), ace.CE()).policy
    yield "policy-rounded.ace", lambda: ace.solve(rover(0.7390851332151607), epsilon=0.25).policy
    yield "policy-nash.ace", lambda: ace.solve(chicken(), ace.Nash()).policy


def _beta() -> Any:
    from scipy import stats

    return stats.beta(2, 3)


def facts(content: ace.MarkovGame | ace.Policy | ace.Solution) -> dict[str, Any]:
    """What must be found again in the file."""
    if isinstance(content, ace.MarkovGame):
        return {"kind": "game", "digest": content.digest}
    policy = content.policy if isinstance(content, ace.Solution) else content
    start = policy.states[policy.initial[0][0]]
    nothing = [0] * len(policy.constraints)
    first = [[list(action), p] for action, p in policy.distribution(0, start, nothing).items()]
    known = {"concept": type(policy.concept).__name__, "digest": policy.game_digest, "first": first}
    if isinstance(content, ace.Policy):
        return {"kind": "policy", **known, "values": policy.values(0, start, nothing).tolist()}
    found = ace.verify(content.game, policy, content.concept)
    assert found.ok, found
    spent = [float(x) for x in found.max_spent]
    told = {"values": content.values.tolist(), "max_spent": spent, "guarantee": str(content.guarantee)}
    return {"kind": "solution", **known, **told}


def make(folder: Path) -> None:
    """Write every sample that the imported acegames can make, and the manifest."""
    folder.mkdir(parents=True)
    manifest = {}
    for name, build in samples():
        try:
            content = build()
            content.save(folder / name)
        except (AttributeError, TypeError, ace.AceError) as error:
            print(f"left out {name}: {type(error).__name__}: {error}")
            continue
        manifest[name] = facts(content)
    (folder / "by-hand.yaml").write_text(BY_HAND)
    manifest["by-hand.yaml"] = facts(ace.load(folder / "by-hand.yaml"))
    lines = (f"{json.dumps(name)}: {json.dumps(known)}" for name, known in manifest.items())
    (folder / "manifest.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
