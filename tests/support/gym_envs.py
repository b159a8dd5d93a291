"""Small Gymnasium environments for tests of how environments are read."""

from __future__ import annotations

import random

import gymnasium
import numpy as np
from gymnasium import spaces


class Small(gymnasium.Env):
    """An environment that begins with observation 0, after `begin`; the actions and observations are so many numbers."""

    observations, choices = 100, 2

    def __init_subclass__(cls, **options):
        super().__init_subclass__(**options)
        cls.observation_space, cls.action_space = spaces.Discrete(cls.observations), spaces.Discrete(cls.choices)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.begin(seed)
        return 0, self.info()

    def begin(self, seed):
        """Make ready for an episode."""

    def info(self):
        return {}


class Corridor(Small):
    """Cells 0 to 4; 1 goes right, which takes a unit of fuel, 0 stays. The end is cell 4."""

    observations = 5

    def __init__(self, wind=0.0, masked=False):
        self.wind, self.masked, self.cell = wind, masked, 0

    def begin(self, seed):
        self.cell = 0

    def step(self, action):
        blown = action == 1 and self.wind and self.np_random.random() < self.wind
        self.cell += int(action) - int(blown)
        over = self.cell == 4
        return self.cell, float(over), over, False, self.info(int(action))

    def info(self, fuel=0):
        return {"cost": {"fuel": fuel}} | ({"action_mask": np.array([self.cell < 2, 1])} if self.masked else {})


class Tiring(Corridor):
    """A corridor that can be walked for two steps only, which the observation does not tell."""

    def begin(self, seed):
        super().begin(seed)
        self.steps = 0

    def step(self, action):
        self.steps += 1
        return super().step(action if self.steps <= 2 else 0)


class Liar(Corridor):
    """Carries the law of a corridor without wind."""

    def __init__(self, wind):
        super().__init__(wind)
        self.P = {c: {a: [(1.0, c + a, float(c + a == 4), c + a == 4)] for a in (0, 1)} for c in range(4)}


class Keeping(Corridor):
    """Draws a number at `reset`, and compares it later."""

    def reset(self, *, seed=None, options=None):
        first = super().reset(seed=seed)
        self.threshold = self.np_random.random()
        return first

    def step(self, action):
        return super().step(int(self.threshold < 0.5))


class TwoSwitches(gymnasium.Env):
    """Two switches are set at once (MultiDiscrete actions); both on pays."""

    observation_space, action_space = spaces.Discrete(4), spaces.MultiDiscrete([2, 2])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, dtype=np.int8), {}

    def step(self, action):
        assert isinstance(action, np.ndarray)
        return action.astype(np.int8), float(action.all()), False, False, {}


class Urn(Small):
    """One of two coins is put into the urn, face down; betting shows it and ends the episode.

    Waiting does nothing. Peeking, where it is allowed, shows heads by another observation.
    """

    observations, choices = 2, 3

    def __init__(self, peeking=False):
        self.peeking = peeking

    def begin(self, seed):
        self.coin, self.seen = str(self.np_random.choice(["heads", "tails"], p=[0.25, 0.75])), 0

    def step(self, action):
        if action == 1:
            return self.seen, 2.0 if self.coin == "heads" else -1.0, True, False, {}
        if action == 2 and self.peeking and self.np_random.random() < 0.5 and self.coin == "heads":
            self.seen = 1
        return self.seen, 0.0, False, False, {}


class Forgetful(Urn):
    """Changes the coin when it is touched, which the observation does not tell."""

    def step(self, action):
        if action == 2:
            self.coin = "heads"
        return super().step(0 if action == 2 else action)


class DrawsAside(Small):
    """Draws by one function of the environment, which shows only where it gives something."""

    def __init__(self, draw):
        self.draw = draw

    def begin(self, seed):
        self.own, self.pythons, self.bits = (
            np.random.Generator(np.random.PCG64(seed)),
            random.Random(seed),
            np.random.PCG64(1),
        )
        self.old = np.random.RandomState(seed)

    def step(self, action):
        number = self.draw(self)
        return number if isinstance(number, int) and number < 100 else 0, 0.0, False, False, {}


class FaceDown(Small):
    """A card is drawn that the observation does not tell; then betting pays 1, and costs 1 if the last card was drawn.

    `when` it is drawn: in the first step, by its third action alone, or in `reset`, where a step is
    waited, or where it is one of sixty ("rare").
    """

    observations, choices = 4, 3

    def __init__(self, when, cards=2):
        self.when, self.costly = when, (60 if when == "rare" else cards) - 1

    def begin(self, seed):
        self.at, self.card = 0, 0
        if self.when in ("reset", "rare"):
            self.np_random.integers(2), self.np_random.integers(2)
            self.draw()

    def draw(self):
        self.card = int(self.np_random.integers(self.costly + 1))

    def step(self, action):
        self.at += 1
        if self.at == 1 and (self.when in ("step", "waiting") or (self.when == "third action" and action == 2)):
            self.draw()
        last = 3 if self.when == "waiting" else 2
        bets = self.at == last and action > 0
        return self.at, float(bets), self.at == last, False, {"cost": int(bets and self.card == self.costly)}


class Recorded(Small):
    """Pays recorded prices, and goes on in the record where the last episode stopped, or pays in every second episode only."""

    def __init__(self, survivor):
        self.at, self.odd, self.prices, self.survivor = 0, False, [3.0, 1.0, 4.0, 1.5, 9.0, 2.0, 6.0] * 9, survivor
        self.record = iter(self.prices)

    def begin(self, seed):
        self.steps, self.odd = 0, not self.odd

    def step(self, action):
        self.steps, self.at = self.steps + 1, self.at + 1
        if self.survivor == "parity":
            return 0, float(self.odd), False, False, {}
        price = next(self.record) if self.survivor == "iterator" else self.prices[self.at % 7]
        return self.steps, price * action, False, False, {}
