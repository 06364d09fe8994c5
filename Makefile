# Two commands for a fresh machine: `make demo` and `make test`. Both may be run again at any time.
PYTHON ?= python3.11
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo quick test check fix docs accept bench clean

demo: $(VENV)/.demo
	$(BIN)/curate run demo --run runs/demo

# While working: no browser, no subprocess, no encoder; about a minute and a half of one core.
quick: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal tests/unit

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Long trials on real data; their figures are kept in docs/.
accept: $(VENV)/.dev
	$(BIN)/python -m pytest -m accept --override-ini=addopts= -s

# How fast agreement and the judge engine are, beside others; takes about ten minutes on an idle machine.
bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks.agreement
	$(BIN)/python -m benchmarks.judge_engine

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of docs/, with the reference made from the program and the report of the demo, in site/.
docs: $(VENV)/.dev demo
	$(BIN)/python docs/reference/make.py
	$(BIN)/mkdocs build --strict --quiet

fix: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(VENV)/bin/python:
	$(shell command -v $(PYTHON) || command -v python3) -m venv $(VENV)

$(VENV)/.demo: $(VENV)/bin/python pyproject.toml curate/__init__.py constraints.txt
	$(PIP) --editable '.[offline]'
	touch $@

$(VENV)/.dev: $(VENV)/.demo
	$(PIP) --editable '.[all,dev]'
	touch $@

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
