PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
OLDEST := .venv-oldest
LEARNERS := .venv-learners
PIP := -m pip install --quiet --disable-pip-version-check
WORKERS ?= 2
PYTEST := -m pytest -n $(WORKERS) --dist worksteal --durations=25
# The tests start many interpreters, which should not compile the same sources each time.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: install demo test test-all test-gambit test-gpu test-interpreted test-learners test-storm test-oldest wheel-test licences lock reliability mutation bench bench-cluster gallery notebooks learners commands docs lint types format clean

install: $(VENV)/.developed  ## create .venv with acegames and its development tools

$(VENV)/.installed: pyproject.toml constraints/dev.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "acegames needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable .
	@touch $@

$(VENV)/.developed: $(VENV)/.installed
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[dev]'
	@touch $@

demo: $(VENV)/.installed  ## solve a bundled game, verify it and play it
	$(BIN)/acegames catalog
	$(BIN)/acegames solve intersection -o demo.ace
	$(BIN)/acegames verify demo.ace
	$(BIN)/acegames simulate demo.ace --episodes 1000 --seed 0

test: install  ## every test that is not marked slow
	$(BIN)/python $(PYTEST) -m 'not slow'

test-gambit: install  ## the tests that need Gambit, which takes minutes to compile where there is no wheel of it
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[gambit]'
	$(BIN)/python -m pytest tests/adapters/test_gambit.py

test-learners:  ## the tests that need Stable-Baselines3, BenchMARL with TorchRL, and RLlib, in an environment of their own
	$(PYTHON) -m venv $(LEARNERS)
	$(LEARNERS)/bin/python $(PIP) --constraint constraints/learners.txt --editable '.[benchmarl,learners,pettingzoo,plot]' \
		'ray[rllib]' pytest
	$(LEARNERS)/bin/python -m pytest tests/adapters/test_learners.py tests/whole/test_examples_learners.py

test-storm: install  ## the tests that need Storm, whose wheel takes 50 MB (and 160 MB of disk)
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[storm]'
	$(BIN)/python -m pytest tests/adapters/test_storm.py tests/whole/test_docs.py -k storm

test-gpu: install  ## the GPU engine without a GPU: its kernels compiled, and driven on the processor; installs 260 MB
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[gpu]'
	$(BIN)/python -m pytest tests/engines/test_gpu.py tests/engines/test_gpu_code.py tests/verifier/test_on_card.py tests/verifier/test_on_card_code.py

test-interpreted: install  ## all digests without compiled code, and some with numba as it is, in some ten minutes
	$(BIN)/python $(PYTEST) tests/whole/test_same_bits.py tests/whole/test_interpreted.py

test-all: install  ## every test, the slow ones too
	$(BIN)/python $(PYTEST)

test-oldest:  ## the tests with the oldest versions that pyproject.toml allows; needs Python 3.11
	$(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python $(PIP) --constraint constraints/oldest.txt --editable '.[cluster,continuous,highs,pettingzoo,plot,openspiel,quantecon,tables]' \
		hypothesis nashpy packaging pytest pytest-xdist
	$(OLDEST)/bin/python $(PYTEST) -m 'not slow'

wheel-test: install  ## build sdist and wheel, install the wheel elsewhere, use it and type-check against it
	$(BIN)/python -m pytest -m slow tests/whole/test_wheel.py

licences: install  ## audit the licences of what acegames depends on, and remake the table in docs/reference/supply.md
	$(BIN)/python docs/_licences.py

lock: install  ## remake constraints/dev.txt: newest versions of everything, for every supported Python
	$(BIN)/python $(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --all-extras --upgrade --python-version 3.11 --no-annotate \
		--custom-compile-command 'make lock' pyproject.toml --output-file constraints/dev.txt

reliability: install  ## remake the figures of docs/reference/reliability.md, in some three hours
	$(BIN)/python $(PIP) atheris
	$(BIN)/python reliability/damage.py --damages 5000
	$(BIN)/python reliability/kill.py --kills 100
	$(BIN)/python reliability/fuzz.py all --seconds 60
	$(BIN)/python reliability/numerics.py --games 10000
	$(BIN)/python reliability/mutate.py --fresh --sample 40 --jobs $(WORKERS)

mutation: install  ## how good the tests are: 40 mutants of each file that decides safety and truth, in about two hours on 2 cores
	$(BIN)/python reliability/mutate.py --sample 40 --jobs $(WORKERS)

bench: install  ## remake benchmarks/README.md, in about ten minutes
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[bench]'
	$(BIN)/python benchmarks/run.py

bench-cluster: install  ## measure two nodes of this machine against two threads, in some minutes
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[bench,cluster]'
	$(BIN)/python benchmarks/cluster.py

gallery: install  ## remake the pictures and tables of docs/gallery, in about a minute
	$(BIN)/python examples/make_gallery.py

notebooks: install  ## run the notebooks of examples/notebooks and store what they show, in about a minute
	$(BIN)/python examples/run_notebooks.py

learners: install  ## remake the Q-learning curves and both pictures of its page, in about a minute
	$(BIN)/python examples/q_learning.py docs/images
	$(BIN)/python examples/learning_curves.py

commands: install  ## remake docs/reference/command-line.md from the program
	$(BIN)/python docs/_commands.py

docs: install  ## build the documentation into site/; open site/index.html
	$(BIN)/python $(PIP) --constraint constraints/dev.txt --editable '.[docs]'
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: install
	$(BIN)/mypy

format: install
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(OLDEST) $(LEARNERS) site demo.ace .pytest_cache .mypy_cache .ruff_cache
