PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: install demo test test-all bench gallery learners docs lint types format clean

install: $(VENV)/.installed  ## create .venv with acegames and its development tools

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "acegames needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: install  ## solve a bundled game, verify it and play it
	$(BIN)/acegames catalog
	$(BIN)/acegames solve intersection -o demo.ace
	$(BIN)/acegames verify demo.ace
	$(BIN)/acegames simulate demo.ace --episodes 1000 --seed 0

test: install  ## every test that is not marked slow
	$(BIN)/python -m pytest -n $(WORKERS) -m 'not slow'

test-all: install  ## every test, the slow ones too
	$(BIN)/python -m pytest -n $(WORKERS)

bench: install  ## remake benchmarks/README.md, in under ten minutes
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

gallery: install  ## remake the pictures and tables of docs/gallery, in about a minute
	$(BIN)/python examples/make_gallery.py

learners: install  ## remake the Q-learning curves and both pictures of docs/shielded-learning.md, in about a minute
	$(BIN)/python examples/q_learning.py docs/images
	$(BIN)/python examples/learning_curves.py

docs: install  ## build the documentation into site/; open site/index.html
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) site demo.ace .pytest_cache .mypy_cache .ruff_cache
