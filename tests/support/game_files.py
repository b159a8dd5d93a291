"""A small game file and ways to change it, shared by the tests of files."""

import json

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
