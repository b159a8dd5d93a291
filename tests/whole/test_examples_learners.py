"""Examples with learners: budgets break without a shield and never with it, and the page shows what was measured."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
from games import ByFunction

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "with-other-libraries" / "shielded-learning.md").read_text()


def broken(episodes):
    return sum(episode.over > 0 for episode in episodes)


@pytest.mark.parametrize("name", ["intersection", "drones", "medium_access_3"])
def test_q_learners_break_budgets_without_the_shield_and_never_with_it(example, name):
    q, game = example("q_learning"), ace.catalog.get(name)
    assert name in q.GAMES
    seen = {how: list(q.learn(game, how, steps=4000, seed=0)) for how in (q.SHIELD, q.NO_SHIELD, q.FINED)}
    for how, episodes in seen.items():
        assert episodes[-1].end == len(episodes) * game.horizon >= 4000
        assert (broken(episodes) == 0) == (how == q.SHIELD), how
    again = list(q.learn(game, q.SHIELD, steps=4000, seed=0))
    assert again == seen[q.SHIELD]


def test_the_world_of_the_q_learners_is_the_game(example):
    """Random play in it earns and spends what the same play does in the simulator."""
    q, game = example("q_learning"), ace.catalog.get("intersection")
    shield = ace.Shield(ace.baselines.without_budgets(game))
    world, rng, totals, spent = q.World(game, shield), np.random.default_rng(0), [], []
    for _ in range(100):
        rows = world.begin(rng)
        for _ in range(game.horizon):
            rows, _, _ = world.step(rows, rng.integers(2, size=(q.TOGETHER, 2)), rng)
            assert (rows >= 0).all()
        assert (shield.situations(rows)[2] == world.spent).all()
        totals.append(world.total)
        spent.append(world.spent[:, 0])
    even = {(a, b): 0.25 for a in ("yield", "dare") for b in ("yield", "dare")}
    played = ace.simulate(game, ByFunction(lambda *_: even), episodes=2000, rng=1)
    assert_same_mean(np.ravel(totals), played.returns.sum(axis=1))
    assert_same_mean(np.ravel(spent), played.spent[:, -1, 0])


def assert_same_mean(one, other):
    error = np.hypot(one.std() / len(one) ** 0.5, other.std() / len(other) ** 0.5)
    assert error > 0 and abs(one.mean() - other.mean()) < 5 * error


def test_bins_count_every_episode_once(example):
    curves = example("learning_curves")
    episodes = [curves.Episode(end=10 * k, total=k, over=k % 3) for k in range(1, 101)]
    bins = curves.in_bins("drones", curves.SHIELD, 0, episodes, 1000)
    assert [b.step for b in bins] == list(range(40, 1001, 40)) and {b.episodes for b in bins} == {4}
    assert (sum(b.broken for b in bins), sum(b.over for b in bins)) == (67, 100)
    assert [b.total for b in bins] == [2.5 + 4 * k for k in range(25)]


@pytest.mark.parametrize("name", ["q_learning", "maskable_ppo"])
def test_the_page_shows_what_is_kept_and_the_picture_is_drawn_from_it(example, name, tmp_path):
    curves = example("learning_curves")
    bins = curves.read(curves.IMAGES / f"{name}.csv")
    curves.write(tmp_path / "again.csv", bins)
    assert (tmp_path / "again.csv").read_bytes() == (curves.IMAGES / f"{name}.csv").read_bytes()
    shown = re.search(rf"<!-- table: {name} -->\n(.*?)<!-- end", PAGE, flags=re.DOTALL)[1].strip()
    assert shown == curves.table(bins)
    for game, how in {(b.game, b.how) for b in bins}:
        own = [b for b in bins if (b.game, b.how) == (game, how)]
        assert min(max(b.step for b in own if b.seed == seed) for seed in {b.seed for b in own}) >= 100_000
        assert (sum(b.broken + b.over for b in own) == 0) == (how == curves.SHIELD)
    curves.draw(bins, name, tmp_path)
    assert 20_000 < (tmp_path / f"{name}.png").stat().st_size < 150_000


@pytest.mark.slow
def test_a_hundred_thousand_steps_of_q_learning(example):
    q = example("q_learning")
    for name in q.GAMES:
        game = ace.catalog.get(name)
        episodes = list(q.learn(game, q.SHIELD, steps=100_000, seed=7))
        assert episodes[-1].end >= 100_000 and broken(episodes) == 0
        late = [e.total for e in episodes if e.end > 90_000]
        assert np.mean(late) > np.mean([e.total for e in episodes[:1000]])
        assert broken(q.learn(game, q.NO_SHIELD, steps=20_000, seed=7)) > 1000


@pytest.mark.slow
@pytest.mark.filterwarnings("default")  # of packages that are not ours
def test_a_hundred_thousand_steps_of_maskable_ppo(example):
    pytest.importorskip("sb3_contrib")
    ppo = example("maskable_ppo")
    ppo.torch.set_num_threads(1)
    episodes = ppo.learn("drones", ppo.SHIELD, steps=100_000, seed=7)
    assert episodes[-1].end >= 100_000 and broken(episodes) == 0
    late = [e.total for e in episodes[-1000:]]
    assert np.mean(late) > np.mean([e.total for e in episodes[:1000]]) + 3
    assert broken(ppo.learn("drones", ppo.NO_SHIELD, steps=8192, seed=7)) > 100


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_the_controller_of_the_page_keeps_the_budget(capsys):
    pytest.importorskip("sb3_contrib")
    (code,) = re.findall(r"^```py\n(.*?)^```$", PAGE, flags=re.MULTILINE | re.DOTALL)
    exec(compile(code, "shielded-learning.md", "exec"), {"__name__": "docs"})
    printed = capsys.readouterr().out
    _, spent, broken = printed.split()
    assert broken == "False" and 0 <= float(spent) <= 6
