# Two commands matter: `make run` opens the app, `make test` proves it. Both set up what they need.

PYTHON ?= python3
# A package index with CPU-only builds of torch, for those who want one.
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
# A file stays on one worker, whose servers and stores its tests share; the longest files, in a browser, come first.
# With bytecode written, wherever that is switched off: it halves the time until the first test.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n logical --dist loadfile --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.PHONY: run ray-demo test test-slow lint bench data-check replays experiments gallery messages clean
.DEFAULT_GOAL := run

run: $(VENV)/.ready
	$(BIN)/streamlit run app.py

# The app on a Ray cluster of two nodes on this machine.
ray-demo: $(VENV)/.ready-ray
	$(BIN)/python -m tests.core.workers.cluster.demo

test: $(VENV)/.ready-dev
	$(BIN)/python -m tests.browser.chromium
	$(PYTEST) -m "not slow"

# What takes long and proves the same for more cases: every preset, model family and lesson, a cluster.
test-slow: $(VENV)/.ready-dev
	$(BIN)/python -m tests.browser.chromium
	$(PYTEST) -m slow

lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.ready-dev
	for script in benchmarks/bench_*.py; do $(BIN)/python -m $$(echo $${script%.py} | tr / .) || exit 1; done

data-check: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks.check_data

# The replays that come with the project, made again from assets/replays/*.json: some minutes.
replays: $(VENV)/.ready
	$(BIN)/python -m core.artifacts.shipped

# The experiments that lessons speak of, carried out again: about an hour on two cores.
experiments: $(VENV)/.ready
	$(BIN)/python -m core.experiments.shipped_experiments

# The replays as pages that open anywhere, with an index, in gallery/.
gallery: $(VENV)/.ready
	$(BIN)/python -m core.exports.gallery gallery

# The catalogues in assets/languages, with exactly the messages that the code has now.
messages: $(VENV)/.ready-dev
	$(BIN)/python -m tests.catalogues

clean:
	rm -rf $(VENV)

$(VENV)/.ready: requirements.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed.")'
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)")
	$(PIP) -r requirements.txt
	touch $@

$(VENV)/.ready-ray: $(VENV)/.ready requirements-ray.txt
	$(PIP) -r requirements-ray.txt
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-ray requirements-dev.txt
	$(PIP) -r requirements-dev.txt
	touch $@
