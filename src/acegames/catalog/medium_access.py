"""Medium access: transmitters with small batteries share one channel.

In every slot each transmitter sends or waits. A sender that is alone delivers its packet; two or
more that send at once collide and deliver nothing, and their energy is gone all the same. The
channel is good or bad, everybody sees which, and a coin decides about the next slot: it stays as
it is with probability 3/4. In a good slot sending takes one unit of energy and a lone packet is
worth 2; in a bad slot it takes two units and is worth 1. Nobody may ever spend more energy than
its battery holds.

Source: slotted random access as a game, after E. Altman, R. El Azouzi and T. Jimenez, "Slotted
Aloha as a game with partial information", Computer Networks 45, 2004; the batteries as hard
budgets and the channel coin are ours.

Facts:
- The smallest feasible batteries are empty ones: waiting costs nothing.
- A battery of one unit lets its owner send at most once, and only in a good slot.
- In a good last slot with energy left, exactly one transmitter sends in the best equilibrium for
  welfare: nobody collides.
- With batteries that never run out, the players' total value is at least that of the default
  ones.
"""

from __future__ import annotations

from typing import Any

from acegames.model.game import MarkovGame

ENERGY = {"good": 1, "bad": 2}
WORTH = {"good": 2.0, "bad": 1.0}


def build(players: int = 2, horizon: int = 5, battery: Any = 3, stay: float = 0.75) -> MarkovGame:
    """Build the game.

    Args:
        players: number of transmitters.
        horizon: number of slots.
        battery: energy of each transmitter: one number, or one per transmitter.
        stay: probability that the channel stays as it is.
    """
    names = [f"tx{i + 1}" for i in range(players)]
    batteries = [battery] * players if not isinstance(battery, (list, tuple)) else list(battery)
    if len(batteries) != players:
        raise ValueError(f"medium_access: {len(batteries)} batteries for {players} players, must be one each")
    other = {"good": "bad", "bad": "good"}

    def outcomes(t: int, channel: str, action: tuple[str, ...]) -> list[tuple[float, str, list[int]]]:
        energy = [ENERGY[channel] if a == "send" else 0 for a in action]
        return [(stay, channel, energy), (1 - stay, other[channel], energy)]

    def reward(t: int, channel: str, action: tuple[str, ...]) -> list[float]:
        alone = action.count("send") == 1
        return [WORTH[channel] if alone and a == "send" else 0.0 for a in action]

    return MarkovGame.from_functions(
        name="medium_access" if players == 2 else f"medium_access_{players}",
        players=names,
        horizon=horizon,
        initial="good",
        budget=batteries,
        constraints=[f"energy of {name}" for name in names],
        actions=lambda t, s: [("send", "wait")] * players,
        outcomes=outcomes,
        reward=reward,
    )
