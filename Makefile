# The few commands people need. Each does its own set-up on a machine with only Python and make.
PYTHON ?= python3
VENV   := .venv
DOCS   := .venv-docs
ifeq ($(OS),Windows_NT)
SCRIPTS := Scripts
else
SCRIPTS := bin
endif
BIN := $(VENV)/$(SCRIPTS)

.PHONY: help test quick audit lint demo docs wheel bench experiments clean

help:
	@echo "make demo    publish and query a generated data set; leaves demo/city.csv, *.dpkde, city.png"
	@echo "make test    lint, types and the whole test suite, statistical audits included"
	@echo "make quick   the tests without the long statistical audits"
	@echo "make audit   the long audits at full length: a million damaged files, 60 and 200 kills, 50 races, some 25 minutes"
	@echo "make docs    the documentation site, with its tutorials run: build/docs/html/index.html"
	@echo "make wheel   what would be published, in dist/, tried in an environment with nothing else"
	@echo "make bench   speed as ratios to peers measured in the same run, and errors at the same ε"
	@echo "make experiments   the paper's figures and claims on generated data, in experiments/results/quick"

$(VENV)/ready: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[dev]"
	@echo ready > $@

test: lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal

quick: lint
	$(BIN)/python -m pytest -q -n auto --dist worksteal -m "not audit"

audit: $(VENV)/ready
	DPKDE_MUTATIONS=1000000 DPKDE_KILLS=60 DPKDE_RACES=50 DPKDE_LEDGER_KILLS=200 DPKDE_AUDITS=full $(BIN)/python -m pytest -q -n auto --dist worksteal -m audit --timeout 5400

lint: $(VENV)/ready
	$(BIN)/python -m ruff check .
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m mypy

demo: $(VENV)/ready
	$(BIN)/dpkde demo

$(DOCS)/ready: pyproject.toml
	$(PYTHON) -m venv $(DOCS)
	$(DOCS)/$(SCRIPTS)/python -m pip install --quiet --disable-pip-version-check --editable ".[docs]"
	@echo ready > $@

docs: $(DOCS)/ready
	$(DOCS)/$(SCRIPTS)/python docs/site build/docs

wheel: $(VENV)/ready
	$(BIN)/python .ci/wheel.py

bench: $(VENV)/ready
	$(BIN)/python benchmarks/sketch.py
	$(BIN)/python benchmarks/noise.py
	$(BIN)/python benchmarks/query.py
	$(BIN)/python benchmarks/hashing.py
	$(BIN)/python benchmarks/text.py
	$(BIN)/python benchmarks/units.py
	$(BIN)/python benchmarks/pictures.py
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[bench]"
	$(BIN)/python benchmarks/sources.py --rows 5000000 --postgres 500000
	$(BIN)/python benchmarks/clusters.py --rows 4000000
	$(BIN)/python benchmarks/low_dimension.py
	$(BIN)/python benchmarks/loops.py
	$(BIN)/python benchmarks/opening.py
	$(BIN)/python benchmarks/accuracy.py
	$(BIN)/python benchmarks/assisted.py kinds times --quick
	$(BIN)/python benchmarks/plans.py --releases 2

experiments: $(VENV)/ready
	$(BIN)/python -m experiments --quick

clean:
	rm -rf $(VENV) $(DOCS) demo build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
