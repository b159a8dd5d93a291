"""A small game file and ways to change it, and what its rules mean, shared by the tests of files."""

import itertools
import json
from fractions import Fraction

import yaml

from acegames.files.formats import load as load_game

SUFFIXES = (".yaml", ".yml", ".json", ".npz")

CHICKEN = """
format: acegames-game
version: 1
name: chicken
players: [red, blue]
constraints: [risk]
horizon: 3
initial: road
budget: {risk: 2}
states: [road]
actions: {red: [dare, yield], blue: [dare, yield]}
rules:
  - reward: [0, 0]
    next: road
  - when: {action: [dare, dare]}
    outcomes: [{probability: 0.5, next: road, cost: {risk: 2}}, {probability: 0.5, cost: {risk: 0}}]
    reward: {red: 1, blue: 2}
"""


def written(tmp_path, text, name="game.yaml"):
    path = tmp_path / name
    path.write_text(text)
    return path


def changed(**entries):
    """CHICKEN as a document with some entries replaced; None removes one."""
    document = {**yaml.safe_load(CHICKEN), **entries}
    return json.dumps({k: v for k, v in document.items() if v is not None})


def load_text(tmp_path, text, name="game.yaml"):
    return load_game(written(tmp_path, text, name))


def rows_of(game):
    """{(t, state, action): (rewards, {(next state, costs): probability})} of a whole game."""
    results = {}
    for t, state in itertools.product(range(game.horizon), game.states):
        layer = game.layer(t)
        for r in layer.rows(game.state_index(state)):
            here = layer.outcomes(r)
            costs = [
                tuple(values[c] for values, c in zip(game.cost_values, codes, strict=True))
                for codes in layer.cost[here].tolist()
            ]
            nexts = [game.states[s] for s in layer.next_state[here].tolist()]
            outcomes = dict(zip(zip(nexts, costs, strict=True), layer.prob[here].tolist(), strict=True))
            results[t, state, game.joint_action(layer.action[r])] = tuple(layer.reward[r].tolist()), outcomes
    return results


def applies(document, when, t, state, action):
    """Whether the condition of a rule holds; `next`, which is about outcomes, is left out."""

    def fits(spec, value):
        return spec == "*" or (value in spec["any"] if isinstance(spec, dict) else spec == value)

    times = when.get("t", "*")
    if isinstance(times, str) and times != "*":
        low, high = map(int, times.split(".."))
        times = list(range(low, high + 1))
    acts = when.get("action", ["*"] * len(action))
    if isinstance(acts, dict):
        acts = [acts.get(p, "*") for p in document["players"]]
    at = times == "*" or (t in times if isinstance(times, list) else t == times)
    return at and fits(when.get("state", "*"), state) and all(map(fits, acts, action))


def meaning(document, t, state, action):
    """The meaning of rules, read off the documentation: the last rule that sets a part counts, and every rule that adds.

    None where the joint action is not legal, "missing" where no rule gives what it needs, else as in `rows_of`.
    """
    here = [rule for rule in document["rules"] if applies(document, rule.get("when", {}), t, state, action)]
    said = {part: rule[part] for rule in here for part in ("outcomes", "reward", "legal") if part in rule}
    if not said.get("legal", document["default_legal"] or "outcomes" in said):
        return None
    if "outcomes" not in said or not ("reward" in said or any("reward" in o for o in said["outcomes"])):
        return "missing"
    adding = [(rule.get("when", {}).get("next"), rule["add"]) for rule in here if "add" in rule]

    def total(part, base, then):
        """The sum of a base and of what is added where this is the next state; None for what is added to all."""
        amounts = [base, *(add[part] for to, add in adding if part in add and then(to))]
        return [sum(Fraction(str(x)) for x in column) for column in zip(*amounts, strict=True)]

    reward = list(map(float, total("reward", said.get("reward", [0, 0]), lambda to: to is None)))
    leads = {}
    for outcome in said["outcomes"]:
        then, p = outcome.get("next", state), outcome["probability"]
        cost = total("cost", outcome.get("cost", [0, 0]), lambda to, then=then: to in (None, then))
        own = total("reward", outcome.get("reward", [0, 0]), lambda to, then=then: to == then)
        reward = [x + p * float(y) for x, y in zip(reward, own, strict=True)]
        leads[then, tuple(cost)] = leads.get((then, tuple(cost)), 0) + p
    return tuple(reward), leads
