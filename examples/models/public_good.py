"""Writes public_good.tra and the files beside it: a public good game, as PRISM-games would export it.

Each month two neighbours put 0, 1 or 2 coins into a common project. It succeeds with probability 3/4. Then
what was put in is multiplied, by 3 in a boom and by 2 in a slump, and shared equally; otherwise it is lost.
The market stays as it is with probability 2/3. The state is the market and how the last project went. What a
neighbour has spent less what it has got back is the reward structure `paid1` or `paid2`: with a budget, it is
the money that the neighbour can lose, and the state need not hold it.

    python examples/models/public_good.py [FOLDER]
"""

from __future__ import annotations

import itertools
import sys
from fractions import Fraction
from pathlib import Path

MARKETS = {"boom": Fraction(3), "slump": Fraction(2)}
SUCCESS, STAYS = Fraction(3, 4), Fraction(2, 3)
COINS = (0, 1, 2)


def main(folder: Path) -> None:
    """Write all files."""
    states = list(itertools.product(MARKETS, (False, True)))
    transitions, paid = [], ([], [])
    for here, (market, _) in enumerate(states):
        for number, coins in enumerate(itertools.product(COINS, repeat=2)):
            for there, (next_market, success) in enumerate(states):
                chance = (STAYS if next_market == market else 1 - STAYS) * (SUCCESS if success else 1 - SUCCESS)
                transitions.append(f"{here} {number} {there} {chance} [give{coins[0]},give{coins[1]}]")
                share = MARKETS[market] * sum(coins) / 2 if success else Fraction(0)
                for own, rewards in zip(coins, paid, strict=True):
                    if own != share:
                        rewards.append(f"{here} {number} {there} {own - share}")
    choices = len(states) * len(COINS) ** 2
    write(
        folder / "public_good.tra", "# Transitions (CSG)", f"{len(states)}:2 {choices} {len(transitions)}", transitions
    )
    listed = [
        f"{k}:({str(market == 'slump').lower()},{str(success).lower()})" for k, (market, success) in enumerate(states)
    ]
    write(folder / "public_good.sta", "# States", "(slump,success)", listed)
    write(folder / "public_good.lab", "# Labels", '0="init" 1="deadlock"', ["0: 0"])
    for i, rewards in enumerate(paid, 1):
        head = f'# Reward structure "paid{i}"\n# Transition rewards'
        write(folder / f"public_good{i}.trew", head, f"{len(states)} {choices} {len(rewards)}", rewards)


def write(path: Path, comment: str, head: str, lines: list[str]) -> None:
    """Write a comment, a first line and the others."""
    path.write_text("\n".join([comment, head, *lines]) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent)
