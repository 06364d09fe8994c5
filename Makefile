# Two commands for a fresh machine: `make demo` and `make test`. Both may be run again at any time.
PYTHON ?= python3.11
VENV   ?= .venv
BIN     = $(VENV)/bin
PIP     = $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo quick test check fix docs accept bench gpu gpu-bundle clean

demo: $(VENV)/.demo
	$(BIN)/curate run demo --run runs/demo

# While working: no browser, no subprocess, no encoder, no simulation; about a minute of one core.
quick: $(VENV)/.dev
	$(BIN)/python -m pytest -m 'not accept and not slow' tests/unit

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist worksteal

# Long trials on real data; their figures are kept in docs/.
accept: $(VENV)/.dev
	$(BIN)/python -m pytest -m accept --override-ini=addopts= -s

# How fast it is, beside others: each benchmark writes its block of docs/evidence.md. All of them take about half an hour
# on an idle machine; `make bench BENCH=search` is one, BENCH="growth export" are those left out. DATA: a folder of real texts.
BENCH ?= agreement diversify judge_engine leaks pool search startup view
DATA  ?=
REAL   = $(if $(DATA),diversify leaks search)
bench: $(VENV)/.dev demo
	$(foreach each,$(if $(DATA),$(BENCH),$(filter-out leaks,$(BENCH))),\
	  $(BIN)/python -m benchmarks.$(each) --write $(if $(filter $(each),$(REAL)),--data $(DATA)) &&) true

# Whether a GPU gives what the processor gives, and how fast; it writes its block of docs/evidence.md. On a bare machine it
# needs no network and no .venv: copy the checkout there, with gpu-bundle.tar.xz in its root, and type `make gpu`. python3 has to
# be 3.12 with torch, sentence-transformers, accelerate, peft, scipy, statsmodels, scikit-learn, pandas and pyarrow; all else is
# in the archive. Without the archive (or on another Python) the packages of PYTHON are taken: `make gpu PYTHON=.venv/bin/python`.
gpu: PYTHON = python3
gpu:
	$(PYTHON) -m benchmarks.gpu --write

# The archive, 43 MB: made where packages can be fetched, in some minutes of one core.
gpu-bundle: $(VENV)/.dev
	$(BIN)/python -m benchmarks.gpu_bundle

check: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The pages of docs/, with the reference made from the program and the report of the demo, in site/.
docs: $(VENV)/.dev demo
	$(BIN)/python -m curate.runs.index
	$(BIN)/python docs/reference/make.py
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true $(BIN)/mkdocs build --strict

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
