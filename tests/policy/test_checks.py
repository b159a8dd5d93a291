"""What is read from a file is used as an index only after it was checked: every single defect of a layer is refused."""

from __future__ import annotations

import functools
import json
import tempfile
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import acegames as ace
from acegames import BadFile
from acegames.files import solution_file
from acegames.policy.policy_file import check_layer
from acegames.safety.cells import Cells, bits_of
from acegames.system.container import read_archive
from games import one_state
from oracle import random_game


def changed(array, at, by):
    found = array.copy()
    found[at] = by(found[at])
    return found


@functools.cache
def layers_of(concept, first):
    """Layers of solved games that change with time: as they are, and with their cells as lists."""
    found = []
    for seed in range(first, first + 60):
        game = random_game(np.random.default_rng(seed), players=2, states=3, constraints=2, horizon=2, stationary=False)
        try:
            policy = ace.solve(game, concept).policy
        except (ace.Infeasible, ace.NoEquilibrium):
            continue
        for layer in policy.layers:
            if len(layer.mixed_size) and len(layer) > 2 and len(layer.space.states) > 1:
                cells = layer.cells
                keys = replace(layer.space, cells=Cells.from_keys(cells.listed(layer.space.total)))
                found.append((policy, layer))
                found.append((policy, replace(layer, space=keys)))
    assert len(found) > 3
    return found[:8]


def mixed_layers():
    return layers_of(ace.CE(), 0)


def product_layers():
    return layers_of(ace.Nash(), 100)


def both():
    return mixed_layers() + product_layers()


def check(policy, layer):
    check_layer(layer, policy, policy.dims)


def test_what_the_solver_makes_is_in_order():
    for policy, layer in both():
        check(policy, layer)


def mixed(layer):
    return int(np.flatnonzero(layer.code == 0)[0])


def pure(layer):
    """A pair at which one joint action is played, and the number of joint actions of its state."""
    cells = layer.cells.listed(layer.space.total)
    state, _ = layer.space.spent(cells)
    pairs = cells if layer.by_cell else np.arange(len(cells))
    k = next((k for k, p in enumerate(pairs) if layer.code[p]), None)
    return None if k is None else (int(pairs[k]), int(np.diff(layer.row_ptr)[state[k]]))


def code_too_large(layer):
    at = pure(layer)
    return at and {"code": changed(layer.code, at[0], lambda _: at[1] + 1)}


def a_mixed_pair_without_record(layer):
    at = pure(layer)
    return at and {"code": changed(layer.code, at[0], lambda _: 0)}


def a_code_besides(layer):
    """A code 0 at a cell that is not reached: the records behind it would be those of other pairs."""
    absent = np.setdiff1d(np.arange(layer.space.total), layer.cells.listed(layer.space.total))
    return layer.by_cell and len(absent) and {"code": changed(layer.code, absent[0], lambda _: 0)}


DAMAGES = {
    "row_ptr does not begin at 0": lambda x: {"row_ptr": changed(x.row_ptr, 0, lambda p: p + 1)},
    "row_ptr does not end at the rows": lambda x: {"row_ptr": changed(x.row_ptr, -1, lambda p: p - 1)},
    "row_ptr falls": lambda x: {"row_ptr": changed(x.row_ptr, 1, lambda p: int(x.row_ptr[2]) + 1)},
    "a state too many": lambda x: {"row_ptr": np.append(x.row_ptr, x.row_ptr[-1])},
    "a negative action": lambda x: {"action": changed(x.action, (0, 0), lambda _: -1)},
    "an action that there is not": lambda x: {"action": changed(x.action, (0, 1), lambda _: 99)},
    "a player too many": lambda x: {"action": np.column_stack([x.action, x.action[:, 0]])},
    "code too large": code_too_large,
    "a mixed pair without record": a_mixed_pair_without_record,
    "a record of a pure pair": lambda x: {"code": changed(x.code, mixed(x), lambda _: 1)},
    "a record too many": lambda x: {"mixed_size": np.append(x.mixed_size, x.mixed_size[:1])},
    "a record too few": lambda x: {"mixed_size": x.mixed_size[:-1]},
    "a record too long": lambda x: {"mixed_size": changed(x.mixed_size, -1, lambda n: n + 1)},
    "a record too short": lambda x: {"mixed_size": changed(x.mixed_size, 0, lambda n: n - 1)},
    "an empty record": lambda x: len(x.mixed_size) > 1 and {
        "mixed_size": np.array([0, x.mixed_size[0] + x.mixed_size[1], *x.mixed_size[2:]], dtype=x.mixed_size.dtype)
    },
    "a code of no cell is that of a record": a_code_besides,
    "an impossible entry": lambda x: {"mixed_prob": changed(x.mixed_prob, 0, lambda _: 0.0)},
    "a negative probability": lambda x: {"mixed_prob": changed(x.mixed_prob, 0, lambda p: -p)},
    "probabilities too large": lambda x: {"mixed_prob": changed(x.mixed_prob, 0, lambda p: p + 1e-4)},
    "probabilities too small": lambda x: {"mixed_prob": changed(x.mixed_prob, -1, lambda p: p - 1e-4)},
    "a row that there is not": lambda x: {"mixed_row": changed(x.mixed_row, -1, lambda _: 250)},
    "no number as a value": lambda x: {"values": changed(x.values, (mixed(x), 0), lambda _: np.nan)},
    "an infinite value": lambda x: {"values": changed(x.values, (mixed(x), 1), lambda _: -np.inf)},
    "a value too few": lambda x: {"values": x.values[:-1]},
    "a player's values too many": lambda x: {"values": np.column_stack([x.values, x.values[:, 0]])},
    "an answer too many": lambda x: {
        "code": np.append(x.code, x.code[-1:]), "values": np.append(x.values, x.values[-1:], axis=0)
    },
    "floats as codes": lambda x: {"code": x.code.astype(float)},
    "signed codes": lambda x: {"code": x.code.astype(np.int64)},
    "signed rows": lambda x: {"mixed_row": x.mixed_row.astype(np.int64)},
    "whole numbers as values": lambda x: {"values": x.values.astype(np.int64)},
    "unsigned pointers": lambda x: {"row_ptr": x.row_ptr.astype(np.uint64)},
    "sizes as floats": lambda x: {"mixed_size": x.mixed_size.astype(float)},
    "signed sizes": lambda x: {"mixed_size": x.mixed_size.astype(np.int64)},
    "sizes whose sum may overflow": lambda x: {"mixed_size": x.mixed_size.astype(np.uint64)},
    "actions as floats": lambda x: {"action": x.action.astype(float)},
    "probabilities as whole numbers": lambda x: {"mixed_prob": np.ones(len(x.mixed_prob), dtype=np.int64)},
    "a table of codes": lambda x: {"code": x.code.reshape(-1, 1)},
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_every_single_defect_is_refused(damage):
    tried = 0
    for policy, layer in both():
        change = DAMAGES[damage](layer)
        if change:
            tried += 1
            with pytest.raises(BadFile):
                check(policy, replace(layer, **change))
    assert tried


def other_space(layer, **change):
    return replace(layer, space=replace(layer.space, **change))


SPACES = {
    "a state twice": lambda s: {"states": changed(s.states, 1, lambda _: s.states[0])},
    "a state that there is not": lambda s: {"states": changed(s.states, -1, lambda _: 3)},
    "a negative state": lambda s: {"states": changed(s.states, 0, lambda _: -1)},
    "states out of order": lambda s: {"states": s.states[::-1].copy()},
    "a constraint too many in boxes": lambda s: {"lo": np.column_stack([s.lo, s.lo[:, 0]])},
    "a constraint too many in bounds": lambda s: {"least": np.column_stack([s.least, s.least[:, 0]])},
}


@pytest.mark.parametrize("damage", SPACES)
def test_every_single_defect_of_boxes_is_refused(damage):
    for policy, layer in both():
        with pytest.raises(BadFile, match="boxes"):
            check(policy, other_space(layer, **SPACES[damage](layer.space)))


def test_defects_of_cells_are_refused():
    for policy, layer in mixed_layers():
        total, cells = layer.space.total, layer.cells
        if cells.keys is None:
            bits = cells.bits.copy()
            wrong = [replace(cells, bits=np.vstack([bits, bits])), replace(cells, bits=bits[:, :32])]
            if total % 512:
                beyond = bits.copy()
                beyond.reshape(-1)[total // 8] |= 1 << (total % 8)
                wrong.append(replace(cells, bits=beyond))
        else:
            keys = cells.keys
            wrong = [replace(cells, keys=x) for x in (keys[::-1].copy(), np.append(keys[:-1], total))]
            wrong += [
                replace(cells, keys=changed(keys, 0, lambda _: -1)),
                replace(cells, keys=keys[[0, 0, *range(2, len(keys))]]),
            ]
        for other in wrong:
            with pytest.raises(BadFile, match="outside its boxes"):
                check(policy, other_space(layer, cells=other))


def test_the_row_after_the_last_is_refused():
    for policy, layer in mixed_layers():
        cells = layer.cells.listed(layer.space.total)
        pairs = cells if layer.by_cell else np.arange(len(cells))
        state = layer.space.spent(cells)[0][layer.code[pairs] == 0][-1]
        rows = int(layer.row_ptr[state + 1] - layer.row_ptr[state])
        check(policy, replace(layer, mixed_row=np.append(layer.mixed_row[:-1], np.uint8(rows - 1))))
        with pytest.raises(BadFile):
            check(policy, replace(layer, mixed_row=np.append(layer.mixed_row[:-1], np.uint8(rows))))


def test_constraints_of_boxes_are_those_of_the_policy():
    policy, layer = mixed_layers()[0]
    with pytest.raises(BadFile, match="constraints"):
        check_layer(layer, policy, tuple(2 for _ in policy.dims))


def test_records_by_player_are_checked():
    for policy, layer in product_layers():
        end = int(layer.mixed_size[0])
        if end < 2:
            continue
        swapped = layer.mixed_row.copy()
        swapped[[0, 1]] = swapped[[1, 0]]
        twice = layer.mixed_row.copy()
        twice[1] = twice[0]
        none_of_one = layer.mixed_row.copy()
        none_of_one[end - 1] = layer.offsets[1] - 1
        beyond = layer.mixed_row.copy()
        beyond[end - 1] = layer.offsets[-1]
        for rows in (swapped, twice, none_of_one, beyond):
            with pytest.raises(BadFile):
                check(policy, replace(layer, mixed_row=rows))


# -- what stands in the file ----------------------------------------------------------------------------------------------


@functools.cache
def written(rounded):
    """Header and arrays of a solution file whose boxes are clipped, and the solution."""
    game = ace.catalog.get("intersection") if not rounded else fine_game()
    solution = ace.solve(game, ace.CE(), epsilon=0.5) if rounded else ace.solve(game, ace.CE())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "solution.ace"
        solution.save(path)
        _, header, arrays = read_archive(path, solution_file.SOLUTION)
    return json.dumps(header), arrays, solution


def fine_game():
    return one_state(
        ["one"],
        [["go", "stay"]],
        lambda t, a: 0.83 if a == ("go",) else 0.01,
        lambda t, a: [float(a == ("go",))],
        horizon=2,
        budget={"fuel": 1.7},
    )


def read_again(rounded=False, change=lambda header, arrays: None):
    header, arrays, _ = written(rounded)
    header, arrays = json.loads(header), dict(arrays)
    change(header, arrays)
    return solution_file._solution_from_archive(header, arrays, "solution.ace")


@pytest.mark.parametrize("rounded", [False, True])
def test_what_was_written_is_read(rounded):
    again, solution = read_again(rounded), written(rounded)[2]
    assert (
        again.values.tolist() == solution.values.tolist()
        and again.policy.tracker.rounding == solution.policy.tracker.rounding
    )


def test_values_that_are_no_floats_are_refused():
    def change(header, arrays):
        arrays["values"] = np.zeros(arrays["values"].shape, dtype=np.int64)

    with pytest.raises(BadFile, match="values of shape"):
        read_again(change=change)


@pytest.mark.parametrize(
    "guarantee", [{"text": 3, "excess": [0]}, {"text": "", "excess": []}, {"text": "", "excess": [0, 0, 0]}]
)
def test_a_guarantee_that_does_not_fit_is_refused(guarantee):
    with pytest.raises(BadFile, match="guarantee does not fit"):
        solution_file._guarantee_from_data(guarantee, fine_game())


@pytest.mark.parametrize(
    ("cell", "direction", "lowest"),
    [
        ("0", "down", None),
        ("-1", "up", None),
        ("1", "sideways", None),
        ("2", "down", "-3"),
        ("1", "down", str(-(2**61))),
    ],
)
def test_rounding_that_cannot_be_is_refused(cell, direction, lowest):
    with pytest.raises(BadFile):
        solution_file._rounding_from_data({"cell": cell, "direction": direction, "lowest": lowest})


def test_rounding_is_read():
    assert solution_file._rounding_from_data(None) is None
    found = solution_file._rounding_from_data({"cell": "1/2", "direction": "up", "lowest": "-3/2"})
    assert (found.cell, found.direction, found.lowest) == (Fraction(1, 2), "up", Fraction(-3, 2))


def boxes():
    space = mixed_layers()[0][1].space
    names = dict(
        zip(solution_file.BOX_ARRAYS, (space.states, space.lo, space.size, space.least, space.most), strict=True)
    )
    return {f"0/{name}": array for name, array in names.items()}, space


@pytest.mark.parametrize("name", ["states", "lo", "size", "least", "most", "bits", "keys"])
@pytest.mark.parametrize(
    "wrong", [lambda a: a.astype(float), lambda a: a.astype(np.int32), lambda a: a[None], lambda a: a[..., None]]
)
def test_boxes_of_the_wrong_type_are_refused(name, wrong):
    arrays, space = boxes()
    keys = space.cells.listed(space.total)
    arrays |= {"0/keys": keys} if name == "keys" else {"0/bits": bits_of(keys, space.total)}
    solution_file._boxes_from_archive(arrays, "0")
    arrays[f"0/{name}"] = wrong(arrays[f"0/{name}"])
    with pytest.raises(BadFile, match="wrong type"):
        solution_file._boxes_from_archive(arrays, "0")


@pytest.mark.parametrize(
    ("name", "wrong"),
    [("states", lambda a: a[:-1]), ("lo", lambda a: a[:-1]), ("size", lambda a: a[:, :-1]), ("least", lambda a: a[:-1]),
     ("most", lambda a: a[:, :-1]), ("size", lambda a: changed(a, (0, 0), lambda _: 0))],
)  # fmt: skip
def test_boxes_that_do_not_fit_together_are_refused(name, wrong):
    arrays, space = boxes()
    arrays["0/keys"] = space.cells.listed(space.total)
    arrays[f"0/{name}"] = wrong(arrays[f"0/{name}"])
    with pytest.raises(BadFile, match="do not fit together"):
        solution_file._boxes_from_archive(arrays, "0")


def test_a_policy_with_one_kind_of_labels_changed_is_another_games():
    _, _, solution = written(False)
    policy, game = solution.policy, solution.game
    tables = [(layer.row_ptr, layer.action) for layer in policy.layers]
    solution_file._check_game(policy, tables, game)
    for kind in ("players", "states", "actions"):
        other = replace(policy, **{kind: (*getattr(policy, kind)[:-1], "other")})
        with pytest.raises(BadFile, match="other labels"):
            solution_file._check_game(other, tables, game)


# -- what a file states -----------------------------------------------------------------------------------------------------


def test_a_certificate_says_where_a_file_states_something_else():
    _, _, solution = written(False)
    right = ace.verify(solution.game, solution.policy, ace.CE())
    assert (
        solution_file.as_stated(right, right.values).ok
        and solution_file.as_stated(right, right.values).problems == right.problems
    )
    assert solution_file.as_stated(right, right.values + 1e-12).ok
    for i, player in enumerate(right.players):
        for off in (0.01, -0.01):
            wrong = solution_file.as_stated(right, changed(right.values, i, lambda v, off=off: v + off))
            assert not wrong.ok and len(wrong.problems) == 1 and repr(player) in wrong.problems[0]
    refused = replace(right, ok=False)
    assert not solution_file.as_stated(refused, right.values).ok
    unknown = replace(right, values=np.full(len(right.players), np.nan), ok=False)
    assert solution_file.as_stated(unknown, right.values).problems == right.problems


@pytest.mark.parametrize("together", [1, 2, 2**16])
def test_values_of_what_was_played_are_compared(together, monkeypatch):
    monkeypatch.setattr(solution_file, "TOGETHER", together)
    _, _, solution = written(False)
    rolled = ace.simulate(solution.game, solution.policy, episodes=50, rng=0)
    solution_file.check_played(solution, rolled)
    for t, layer in enumerate(solution.policy.layers):
        layers = list(solution.policy.layers)
        layers[t] = replace(layer, values=layer.values + 0.01)
        other = replace(solution, policy=replace(solution.policy, layers=layers))
        with pytest.raises(BadFile, match="expects"):
            solution_file.check_played(other, rolled)


@pytest.mark.parametrize("horizon", [1, 3])
def test_the_only_value_that_is_not_that_of_play_is_found(horizon):
    """One player in one situation per time; what comes first is changed."""
    game = one_state(["one"], [["go", "stay"]], lambda t, a: 0, lambda t, a: [float(a == ("go",))], horizon=horizon, budget=1)  # fmt: skip
    solution = ace.solve(game)
    rolled = ace.simulate(game, solution.policy, episodes=2, rng=0)
    solution_file.check_played(solution, rolled)
    first, *later = solution.policy.layers
    wrong = replace(solution.policy, layers=(replace(first, values=first.values + 0.5), *later))
    with pytest.raises(BadFile, match=f"'one' expects {horizon}.5 at t=0, state 's', .* is worth {horizon} to it"):
        solution_file.check_played(replace(solution, policy=wrong), rolled)


@pytest.mark.parametrize("damage", SPACES)
def test_every_single_defect_of_what_is_reached_is_refused(damage):
    """The boxes of the pairs that can occur are checked as those of the policy are."""
    _, _, solution = written(False)
    space = solution.policy.reached.layers[-1]

    def spoil(header, arrays):
        for name, array in SPACES[damage](space).items():
            arrays[f"policy/reached/{len(solution.policy.layers) - 1}/{name}"] = array

    with pytest.raises(BadFile, match="boxes"):
        read_again(change=spoil)
