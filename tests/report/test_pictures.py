"""Pictures of states: where they come from, what is refused, and that they stay images."""

from __future__ import annotations

import base64
from xml.etree import ElementTree

import pytest

import acegames as ace
from acegames.catalog import picture_of
from acegames.catalog._pictures import DRAWINGS
from acegames.report.page import PNG, Pictures, file_name
from acegames.report.write import collect
from games import one_state

SVG = "<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><circle r='{}'/></svg>"


@pytest.fixture(scope="module")
def solution():
    return ace.solve(ace.catalog.get("rendezvous"))


def pictures(solution, render):
    return collect(solution, episodes=5, rng=0, most=None, render=render)[0]["pictures"]


def decoded(address):
    kind, _, data = address.partition(";base64,")
    return kind, base64.b64decode(data)


def test_a_function_and_a_mapping_give_the_same_and_none_gives_nothing(solution):
    made = {state: SVG.format(k) for k, state in enumerate(solution.game.states)}
    result = pictures(solution, made.get)
    assert result == pictures(solution, made) and len(result) == 2
    for s, address in result.items():
        assert decoded(address) == ("data:image/svg+xml", made[solution.game.states[int(s)]].encode())
    assert list(pictures(solution, {"calm": SVG}).keys()) == [str(solution.game.state_index("calm"))]
    assert pictures(solution, lambda state: None) == {} == pictures(solution, None)


def test_png_bytes_and_what_notebooks_can_show(solution):
    class Shown:
        def _repr_png_(self):
            return PNG + b"x"

    assert {decoded(x) for x in pictures(solution, lambda s: PNG + b"x").values()} == {("data:image/png", PNG + b"x")}
    assert pictures(solution, lambda s: Shown()) == pictures(solution, lambda s: PNG + b"x")


def test_a_folder_has_files_named_by_states(solution, tmp_path):
    (tmp_path / "calm.svg").write_text(SVG)
    (tmp_path / "breeze.png").write_bytes(PNG)
    (tmp_path / "notes.txt").write_text("no picture")
    assert len(pictures(solution, tmp_path)) == len(pictures(solution, str(tmp_path))) == 2
    assert file_name(("a/b", 1)) == "a_b · 1"


def test_each_state_is_drawn_once_and_only_if_it_is_shown(monkeypatch):
    solution, drawn = ace.solve(ace.catalog.get("drones")), []
    monkeypatch.setattr("acegames.report.write.FITS", 60_000)  # several attempts to fit

    def render(state):
        drawn.append(state)
        return SVG

    result = pictures(solution, render)
    assert len(drawn) == len(set(drawn)) and len(result) <= len(drawn) < len(solution.game.states)


def test_what_does_not_fit_is_left_out_and_said(solution, monkeypatch):
    monkeypatch.setattr("acegames.report.page.LONGEST_ADDRESS", 400)
    data, *_ = collect(solution, episodes=5, rng=0, most=None, render=lambda s: SVG + " " * 120)
    assert len(data["pictures"]) == 1 and any("do not fit" in note.words for note in data["notes"])
    with pytest.raises(ace.InvalidOption, match=r"render: for the state 'calm': the picture has 5,\d\d\d bytes"):
        pictures(solution, lambda s: SVG + " " * 5000)


@pytest.mark.parametrize(
    ("render", "said"),
    [
        (7, "render: got int, must be a function"),
        (lambda s: 7, "for the state 'calm': got int, must be text with an <svg>"),
        (lambda s: "a circle", "got 'a circle', must be text"),
        (lambda s: b"GIF89a", "must be text with an <svg>"),
        ("no such folder", "is no folder"),
        ({}, "the mapping is empty"),
        ({"clam": SVG}, "render: unknown state 'clam', did you mean 'calm'?"),
        (lambda t, state: SVG, r"render: takes \(t, state\), must be a function of the state alone"),
    ],
)
def test_wrong_pictures_are_refused(solution, render, said, tmp_path):
    with pytest.raises(ace.InvalidOption, match=said):
        solution.report(tmp_path / "r.html", episodes=2, render=render)
    assert not (tmp_path / "r.html").exists()


def test_a_mapping_may_know_more_than_the_states(solution):
    every = dict.fromkeys([*solution.game.states, "elsewhere"], SVG)
    assert len(pictures(solution, every)) == 2


def test_figures_of_matplotlib_are_pictures(solution):
    figure = pytest.importorskip("matplotlib.figure").Figure(figsize=(1, 1))
    result = pictures(solution, lambda state: figure)
    kind, data = decoded(next(iter(result.values())))
    assert kind == "data:image/png" and data.startswith(PNG)
    axes = figure.add_subplot()
    assert pictures(solution, lambda state: axes) == pictures(solution, lambda state: figure) != result


def test_a_folder_without_a_picture_of_a_state_is_refused(solution, tmp_path):
    with pytest.raises(ace.InvalidOption, match="holds no pictures"):
        pictures(solution, tmp_path)
    (tmp_path / "clam.svg").write_text(SVG)
    with pytest.raises(ace.InvalidOption, match="no picture of a state: unknown state 'clam', did you mean 'calm'"):
        pictures(solution, tmp_path)


def test_an_error_of_the_function_names_the_state(solution):
    with pytest.raises(ZeroDivisionError) as raised:
        pictures(solution, lambda s: 1 / 0)
    assert "render: raised this for the state 'calm'" in raised.value.__notes__


def test_hostile_pictures_and_names_stay_inside_their_address(solution, tmp_path):
    hostile = "<svg onload='alert(1)'><script>alert(2)</script></svg>\"></script><img src=x>"
    solution.report(tmp_path / "r.html", episodes=2, render=lambda s: hostile)
    text = (tmp_path / "r.html").read_text()
    assert text.count("<script") == text.count("</script>") == 3 and "onload" not in text and "<img" not in text


@pytest.mark.parametrize("name", DRAWINGS)
def test_catalog_games_draw_all_their_states(name):
    game = ace.catalog.get(name)
    draw = picture_of(game)
    drawn = [draw(state) for state in game.states]
    assert len(set(drawn)) == len(drawn), "two states look alike"
    for text in drawn:
        assert ElementTree.fromstring(text).tag.endswith("svg")
    assert all(Pictures(game, None).of(s) for s in range(len(game.states)))


def test_the_pads_of_a_warehouse_are_where_it_has_them():
    game = ace.catalog.get("warehouse", width=4, height=2, pads=((3, 1), (0, 0)), horizon=3)
    shown = ElementTree.fromstring(picture_of(game)(game.states[0]))
    results = {(x.get("x"), x.get("y")) for x in shown.iter() if x.text == "pad"}
    assert results == {("210.0", "54"), ("30.0", "114")}


@pytest.mark.parametrize("name", DRAWINGS)
def test_another_game_with_the_name_of_a_catalog_game_has_no_picture(name):
    game = one_state(["one"], [("go",)], lambda t, a: None, lambda t, a: [1], state="somewhere", name=name)
    assert picture_of(game) is None
