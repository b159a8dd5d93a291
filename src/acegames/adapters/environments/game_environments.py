"""What environments of games for PettingZoo, Gymnasium and Safety-Gymnasium have in common.

Spaces, pictures and text for people, and both vector environments: a batch of episodes in a step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from gymnasium.vector.utils import batch_space
from numpy.typing import NDArray

from acegames.adapters.environments.env_interface import MASKS, OF_BATCHES, STYLES, Options, metadata, read_options
from acegames.adapters.environments.play import BatchPlay, Play, Stepped, final_entries
from acegames.errors import InvalidOption
from acegames.model.budgets import Reservoir
from acegames.model.checks import check_known, show
from acegames.model.game import Label, MarkovGame, check_game
from acegames.model.numbers import Bound, exact
from acegames.model.words import called, spelled


class GameEnvironment:
    """Rendering, and questions in the words of the game, of every environment of a game."""

    def __init__(self, game: MarkovGame, options: Options, masks: tuple[str, ...] = MASKS) -> None:
        self.play = Play(game, options, masks)
        self.game, self.render_mode = game, options.render_mode
        self.layout = self.play.layout  # which entries of the vector hold what
        self.constraint_names = self.play.names  # {label: name in the keys of infos}
        self.metadata = metadata(game)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.game!r}>"

    @property
    def situation(self) -> tuple[int, Label, Any]:
        """(t, state, spent) in the words of the game, as a Policy or a Shield takes them."""
        self.play.check_begun()
        return self.play.episode.t, self.game.states[self.play.episode.state], self.play.spent

    @property
    def costs(self) -> dict[Label, Any]:
        """The exact cost of the last step, by constraint, as a Runner takes it."""
        self.play.check_begun()
        return dict(zip(self.game.constraints, self.play.costs, strict=True))

    def render(self) -> Any:
        """Return text or a picture, as `render_mode` says; for people the text is printed."""
        if self.render_mode is None:
            known = self.metadata["render_modes"]
            raise InvalidOption(f"render: give a render_mode when the environment is made: {known}")
        self.play.check_begun()
        if self.render_mode == "human":
            print(text(self.play), end="\n\n", flush=True)
            return None
        return picture(self.play) if self.render_mode == "rgb_array" else text(self.play)

    def show_people(self) -> None:
        """Render after every step where a person watches."""
        if self.render_mode == "human":
            self.render()


class AgentInterface:
    """PettingZoo's parallel interface to one play or a batch: everything goes by agent."""

    play: Any
    agents: list[str]
    one_action = "action"  # what `step` takes of each agent
    _rng: Any = None

    def name_agents(self) -> None:
        """Read the names of the agents and their spaces in one environment."""
        self.possible_agents: list[str] = list(self.play.agents)
        self._seen = self.each(lambda i: observation_space(self.play, i))
        self._actions = self.each(lambda i: spaces.Discrete(len(self.play.game.actions[i])))

    def observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations (in all environments), always one object."""
        return self._seen[agent]

    def action_space(self, agent: str) -> Any:
        """Return the numbers of an agent's actions, as in `game.actions`, always one object."""
        return self._actions[agent]

    def close(self) -> None:
        """Do nothing: nothing is held open."""

    def state(self) -> Any:
        """Return the vector that every agent sees, or those of a batch, (num_envs, size)."""
        self.play.check_begun()
        return self.play.vector.copy()

    def generator(self, seed: int | None) -> np.random.Generator:
        """Return the random generator, begun anew by a seed."""
        if self._rng is None or seed is not None:
            self._rng, _ = seeding.np_random(seed)
        return self._rng  # type: ignore[no-any-return]

    def ordered(self, actions: Mapping[str, Any]) -> list[Any]:
        """Return the actions by agent in the order of the agents."""
        if not isinstance(actions, Mapping):
            raise InvalidOption(f"actions {show(actions)}: must be {{agent: {self.one_action}}}")
        check_known("agent", actions, self.possible_agents, "actions: ")
        missing = [a for a in self.possible_agents if a not in actions]
        if missing and self.agents:
            rule = f"must be one {self.one_action} for each agent"
            raise InvalidOption(f"actions {show(dict(actions))}: none for {missing[0]!r}, {rule}")
        return [actions.get(a) for a in self.possible_agents]

    def each(self, of: Any) -> dict[str, Any]:
        """Return {agent: what a function of the agent's number gives}."""
        return {agent: of(i) for i, agent in enumerate(self.possible_agents)}


def vector_space(play: Play | BatchPlay) -> spaces.Box:
    """Return the space of vectors; only features and remaining budgets can be negative."""
    low = np.zeros(play.layout.size, dtype=np.float32)
    low[play.layout.time + 1 :] = -1.0
    if play.layout.table is not None:
        low[play.layout.state] = -1.0
    return spaces.Box(low, np.float32(1.0), dtype=np.float32)


def observation_space(play: Play | BatchPlay, i: int) -> spaces.Space[object]:
    """Return the space of observations of player i."""
    if play.options.observation == "vector":
        return vector_space(play)
    style = STYLES[play.options.style]
    mask = spaces.Box(0, 1, (len(play.game.actions[i]),), dtype=style.mask)
    return spaces.Dict({style.observation: vector_space(play), "action_mask": mask})


# -- a play to look at, as text for a terminal or as a picture

WIDTH = 20
"""Characters of a bar."""


def text(play: Play) -> str:
    """Return time, state, budgets, the last actions, and those that are open now."""
    return "\n".join([_title(play), *_budgets(play), *_players(play)])


def _title(play: Play) -> str:
    t, state = play.episode.t, play.game.states[play.episode.state]
    end = "" if play.running else ", over: an action that is not offered" if play.illegal else ", over"
    return f"{play.game.name or 'game'}, t = {t} of {play.game.horizon}{end}: {called(state)}"


def _budgets(play: Play) -> list[str]:
    widest = max((len(called(c)) for c in play.game.constraints), default=0)
    rows = zip(play.game.constraints, play.spent, play.episode.bounds, play.game.reservoirs, strict=True)
    return [
        f"  {called(label):<{widest}}  {_budget(spent, bound, reservoir)}" for label, spent, bound, reservoir in rows
    ]


def _budget(spent: Any, bound: Bound, reservoir: Reservoir | None) -> str:
    """Return a bar of what was spent, or of the level of a reservoir, and both numbers."""
    if reservoir is not None:
        level, reserve = reservoir.capacity - exact(spent), reservoir.capacity - bound
        least = f", reserve {spelled(reserve)}" if reserve > 0 else ""
        over = ", below the reserve" if reserve > 0 else ", ran dry"
        said = f"{spelled(level)} left of {spelled(reservoir.capacity)}{least}{over if spent > bound else ''}"
        return f"{_bar(level, reservoir.capacity)} {said}"
    of = f"of {spelled(bound)}{', over the budget' if spent > bound else ''}"
    said = "spent, no budget" if isinstance(bound, float) else of
    return f"{_bar(spent, bound)} {spelled(spent)} {said}"


def _bar(part: Any, whole: Bound) -> str:
    full = 0.0 if isinstance(whole, float) or whole <= 0 else float(part) / float(whole)
    filled = round(WIDTH * min(1.0, max(0.0, full)))
    return f"{'█' * filled}{'░' * (WIDTH - filled)}"


def _players(play: Play) -> list[str]:
    widest = max(map(len, play.agents))
    lines = []
    for i, agent in enumerate(play.agents):
        said = []
        if play.episode.steps:
            step = play.episode.steps[-1]
            said.append(f"played {called(play.game.actions[i][step.action[i]])} for {step.rewards[i]:g}")
        if play.running:
            may = [called(a) for a, on in zip(play.game.actions[i], play.mask[i], strict=True) if on]
            said.append(f"may {' or '.join(may)}")
        lines.append(f"  {agent:<{widest}}  {', '.join(said) or 'no more moves'}")
    return lines


def picture(play: Play) -> NDArray[np.uint8]:
    """Draw cumulative costs against the budgets, below the text; (height, width, 3)."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    rows = len(play.game.constraints)
    figure = Figure(figsize=(6.4, 0.8 + 0.2 * len(play.agents) + 1.7 * rows), dpi=100, layout="constrained")
    canvas: Any = FigureCanvasAgg(figure)
    said = "\n".join([_title(play), *_players(play)]).replace("$", r"\$")  # no mathematics
    figure.suptitle(said, fontsize=9, x=0.01, ha="left", family="monospace")
    axes: Any = figure.subplots(rows, 1, sharex=True, squeeze=False)[:, 0] if rows else []
    for m, ax in enumerate(axes):
        _spending(ax, play, m)
    if rows:
        axes[-1].set_xlabel("steps played")
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[:, :, :3].copy()


def _spending(ax: Any, play: Play, m: int) -> None:
    """Draw the cumulative cost of one constraint so far, under the schedule of its budget.

    Of a reservoir draw the level, above what must be left.
    """
    from acegames.plot.drawing import BLUE, VERMILION, tidy, whole_ticks
    from acegames.plot.drawing import called as on_axis

    game, reservoir = play.game, play.game.reservoirs[m]
    spent = np.array([float(game.spent_at_start[m]), *(float(step.spent[m]) for step in play.episode.steps)])
    bound = np.array([float(row[m]) if not isinstance(row[m], float) else np.nan for row in game.budgets])
    if reservoir is not None:
        spent, bound = float(reservoir.capacity) - spent, float(reservoir.capacity) - bound
    ax.stairs(bound, np.arange(game.horizon + 1), baseline=None, color=VERMILION, linewidth=2)
    ax.plot(range(len(spent)), spent, "o-", color=BLUE, markersize=5, clip_on=False, zorder=3)
    ax.set(xlim=(0, game.horizon), ylabel=on_axis(game.constraints[m]))
    ax.margins(y=0.15)
    whole_ticks(ax, range(game.horizon + 1))
    tidy(ax)


# -- batches of plays


class _GameBatch:
    """What the vector environments of a game for one agent and for several share."""

    def __init__(self, game: MarkovGame, num_envs: int, autoreset_mode: Any, options: Mapping[str, Any]) -> None:
        self.play = BatchPlay(game, num_envs, read_options(options, OF_BATCHES), autoreset_mode)
        self.game, self.num_envs, self.layout = game, self.play.size, self.play.layout
        self.constraint_names = self.play.names  # {label: name in the keys of infos}
        self.metadata = {**metadata(game), "render_modes": [], "autoreset_mode": autoreset_of(self.play)}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.num_envs:,} of {self.game!r}>"

    def situation(self, number: int) -> tuple[int, Label, Any]:
        """Return (t, state, spent) of one environment, as a Policy or a Shield takes them."""
        self.play.check_begun()
        return self.play.batch.situation(number)


class GameVectorEnv(_GameBatch, gymnasium.vector.VectorEnv):
    """Many plays of a game by one agent. Episodes end, as terminated, at the horizon."""

    def __init__(self, game: MarkovGame, num_envs: int = 1, autoreset_mode: Any = "NextStep", **options: Any) -> None:
        check_one_player(game)
        super().__init__(game, num_envs, autoreset_mode, options)
        self.single_observation_space = observation_space(self.play, 0)
        self.single_action_space = gymnasium.spaces.Discrete(len(game.actions[0]))
        self.observation_space = batch_space(self.single_observation_space, self.num_envs)
        self.action_space = batch_space(self.single_action_space, self.num_envs)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """Begin all episodes anew. A seed begins the random numbers of the batch anew, too.

        Args:
            seed: one for the whole batch.
            options: {"reset_mask": booleans, one per environment} begins those alone.
        """
        check_seed(seed)
        super().reset(seed=seed)
        self.play.reset(self.np_random, reset_mask(options, self.num_envs))
        return self.play.observation(0), self._info()

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Play one action number per environment; return Gymnasium's five values, as batches."""
        stepped = self.play.step([actions], self.np_random)
        cut = np.zeros(self.num_envs, dtype=bool)
        return self.play.observation(0), stepped.rewards[:, 0], stepped.ended, cut, self._info(stepped)

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the masks of all environments, (num_envs, n)."""
        self.play.check_begun()
        return self.play.mask[0].astype(bool)

    def _info(self, stepped: Stepped | None = None) -> dict[str, Any]:
        """Return infos, each with Gymnasium's `_key`: which environments have it, here all."""
        info = self.play.info(0)
        every = {f"_{key}": np.ones(self.num_envs, dtype=bool) for key in info}
        return {**info, **every, **({} if stepped is None else final_entries(stepped, 0))}


def autoreset_of(play: BatchPlay) -> Any:
    """Return the mode as Gymnasium 1.1 and later name it; its word before."""
    known = getattr(gymnasium.vector, "AutoresetMode", str)
    return known(play.autoreset)


def check_seed(seed: Any) -> None:
    """Raise InvalidOption for anything but one seed for the batch."""
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0):
        rule = "must be one whole number of at least 0 for the whole batch, or None"
        raise InvalidOption(f"seed: got {show(seed)}, {rule}")


def reset_mask(options: Any, number: int) -> NDArray[np.bool_] | None:
    """Return which environments are to begin anew; None: all of them. Other options are ignored."""
    chosen = (options or {}).get("reset_mask")
    if chosen is None:
        return None
    mask = np.asarray(chosen)
    if mask.shape != (number,) or mask.dtype != bool:
        got = f"{mask.dtype} of the shape {mask.shape}"
        raise InvalidOption(f"reset_mask: got {got}, must be {number} booleans, one per environment")
    return mask


class GameVectorParallelEnv(_GameBatch, AgentInterface):
    """Many plays of a game by all agents at once. Episodes end, as terminated, at the horizon.

    PettingZoo's parallel interface with a leading axis of `num_envs` on every array. Agents never
    leave: an episode that is over begins anew, as `autoreset_mode` says.
    """

    one_action = "action number per environment"

    def __init__(self, game: MarkovGame, num_envs: int, autoreset_mode: Any = "NextStep", **options: Any) -> None:
        super().__init__(game, num_envs, autoreset_mode, options)
        self.name_agents()
        self.agents = list(self.possible_agents)
        self._single_seen, self._single_actions = self._seen, self._actions
        self._seen = {agent: batch_space(space, self.num_envs) for agent, space in self._seen.items()}
        self._actions = {agent: batch_space(space, self.num_envs) for agent, space in self._actions.items()}

    def single_observation_space(self, agent: str) -> Any:
        """Return the space of an agent's observations in one environment, always one object."""
        return self._single_seen[agent]

    def single_action_space(self, agent: str) -> Any:
        """Return the numbers of an agent's actions, as in `game.actions`, always one object."""
        return self._single_actions[agent]

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict[str, Any], ...]:
        """Begin all episodes anew; return observations and infos by agent.

        Args:
            seed: one for the whole batch; it begins the random numbers anew.
            options: {"reset_mask": booleans, one per environment} begins those alone.
        """
        check_seed(seed)
        self.play.reset(self.generator(seed), reset_mask(options, self.num_envs))
        return self.each(self.play.observation), self._infos()

    def step(self, actions: Mapping[str, Any]) -> tuple[dict[str, Any], ...]:
        """Play {agent: one action number per environment}; return PettingZoo's five values."""
        stepped = self.play.step(self.ordered(actions), self._rng)
        return (
            self.each(self.play.observation),
            self.each(lambda i: stepped.rewards[:, i].copy()),
            self.each(lambda i: stepped.ended.copy()),
            self.each(lambda i: np.zeros(self.num_envs, dtype=bool)),
            self._infos(stepped),
        )

    def _infos(self, stepped: Stepped | None = None) -> dict[str, Any]:
        infos = self.each(self.play.info)
        if stepped is not None:
            for i, agent in enumerate(self.possible_agents):
                infos[agent] |= final_entries(stepped, i)
        return infos


def check_one_player(game: MarkovGame) -> None:
    """Raise InvalidOption for a game of several players."""
    check_game(game)
    if len(game.players) != 1:
        rule = "must have one; for several there is acegames.adapters.pettingzoo.parallel_env"
        raise InvalidOption(f"the game has {len(game.players)} players {game.players!r}, {rule}")
