# Two commands matter: `make run` opens the app, `make test` proves it. Both set up what they need.

PYTHON ?= python3
# A package index with CPU-only builds of torch, for those who want one.
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
# A file stays on one worker, whose servers and stores its tests share; the longest files, in a browser, come first.
# With bytecode written, wherever that is switched off: it halves the time until the first test.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n logical --dist loadfile --no-loadscope-reorder
# Every package in the version of the locks; their hashes are checked where the image is built, as builds of torch differ.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
VERSIONS := sed -n 's/^\([a-zA-Z0-9][^ ]*==[^\\]*\).*/\1/p'
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
# torch and the CUDA libraries that its builds for Linux name themselves, in exact versions.
LOCK += --no-emit-package torch --no-emit-package triton $(addprefix --no-emit-package cuda-,bindings pathfinder toolkit)
LOCK += $(addprefix --no-emit-package nvidia-,cublas cuda-cupti cuda-nvrtc cuda-runtime cudnn-cu13 cufft cufile curand)
LOCK += $(addprefix --no-emit-package nvidia-,cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)

.PHONY: run ray-demo test test-slow lint bench data-check replays experiments gallery glossary messages lock clean
.DEFAULT_GOAL := run

run: $(VENV)/.ready
	$(BIN)/streamlit run app.py

# The app on a Ray cluster of two nodes on this machine.
ray-demo: $(VENV)/.ready-ray
	$(BIN)/python -m core.workers.cluster.demo

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

# docs/glossary.md, from the glossary of the app.
glossary: $(VENV)/.ready
	$(BIN)/python -m core.glossary > docs/glossary.md

# The catalogues in assets/languages, with exactly the messages that the code has now.
messages: $(VENV)/.ready-dev
	$(BIN)/python -m tests.catalogues

# The newest packages that go with requirements*.txt, written to the locks.
lock: $(VENV)/.ready-dev
	$(BIN)/$(LOCK) --upgrade requirements.txt --output-file requirements.lock
	$(BIN)/$(LOCK) --upgrade requirements-dev.txt --constraints requirements.lock --output-file requirements-dev.lock

clean:
	rm -rf $(VENV)

$(VENV)/.ready: requirements.txt requirements.lock
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed.")'
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)")
	$(VERSIONS) requirements.lock > $(VENV)/versions.txt
	$(PIP) --constraint $(VENV)/versions.txt -r requirements.txt
	touch $@

$(VENV)/.ready-ray: $(VENV)/.ready requirements-ray.txt requirements-dev.lock
	$(VERSIONS) requirements-dev.lock > $(VENV)/versions-dev.txt
	$(PIP) --constraint $(VENV)/versions-dev.txt -r requirements-ray.txt
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-ray requirements-dev.txt
	$(PIP) --constraint $(VENV)/versions-dev.txt -r requirements-dev.txt
	touch $@
