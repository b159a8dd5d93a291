"""Makes the figures of docs/with-other-libraries/storm.md; needs the extra `storm`, and some minutes for the last table.

python examples/models/figures.py
"""

from __future__ import annotations

from pathlib import Path

import stormpy

import acegames as ace
from acegames.adapters.storm import read_model

MODELS = Path(__file__).parent


def storm(name: str, constants: dict[str, int], formula: str) -> float:
    """The value that Storm computes from the initial state."""
    program, _ = stormpy.instantiate_constants(stormpy.parse_prism_program(str(MODELS / name)), constants)
    properties = stormpy.parse_properties(formula, program)
    model = stormpy.build_model(program, properties)
    found = stormpy.model_checking(model, properties[0], only_initial_states=True)
    return float(found.get_value(model.initial_states[0]))


def robot() -> None:
    """Hard budgets against bounds on the runs that count."""
    asked = {"horizon": 40, "reach": "goal", "constants": {"N": 5}}
    for energy in (4, 5, 6, 7, 8, 10):
        game = read_model(MODELS / "robot.prism", budget={"energy": energy}, **asked)
        bounded = storm("robot.prism", {"N": 5}, f'Pmax=? [F{{"energy"}}<={energy},{{"time"}}<=40 "goal"]')
        print(f"robot, energy {energy}: {ace.solve(game).values[0]:.4f}, Storm {bounded:.4f}")


def public_good() -> None:
    """What money is worth."""
    rewards = {"player1": "-paid1", "player2": "-paid2"}
    game = read_model(MODELS / "public_good.tra", horizon=4, reward=rewards, budget={"paid1": 2, "paid2": 2})
    for first, second in ((0, 0), (1, 1), (2, 2), (4, 4), (8, 8), (1, 4)):
        values = ace.solve(game.with_budget({"paid1": first, "paid2": second})).values
        print(f"public good, money {first} and {second}: {values.round(3)}")


def coin() -> None:
    """A hostile scheduler of processes with batteries."""
    names = [f"tosses{i}" for i in range(1, 5)]
    asked = {"horizon": 60, "constants": {"K": 2}}
    total = read_model(MODELS / "coin4.prism", budget={"tosses": 60}, **asked)
    print(f"coin4, tosses that cannot be avoided: {ace.feasibility(total).minimal_budgets}")
    worst = storm("coin4.prism", {"K": 2}, 'Pmin=? [F<=60 "finished"]')
    print(f"coin4, Storm: {worst:.5f}")
    game = read_model(MODELS / "coin4.prism", budget=dict.fromkeys(names, 60), reach="-finished", **asked)
    for tosses in (5, 6, 7, 60):
        solution = ace.solve(game.with_budget(dict.fromkeys(names, tosses)))
        print(f"coin4, tosses {tosses}: {-solution.values[0]:.5f}, {solution.stats}")


if __name__ == "__main__":
    robot()
    public_good()
    coin()
