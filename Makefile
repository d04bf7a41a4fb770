# Every target sets up .venv by itself, with what it needs; nothing else is needed but Python 3.11,
# pip and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Two steps: what radii itself needs, which is all of the demo; then what tests and checks need.
RUNS := $(VENV)/.runs
READY := $(VENV)/.ready
EXTRAS := docs,exact,foolbox,gurobi,marabou,parquet,ray,smt,tensorboard,train
TOOLS := build hypothesis ipykernel keras mypy nbclient playwright pytest pytest-xdist ruff 'setuptools>=77' skl2onnx types-psutil
TORCH := $(VENV)/lib/python*/site-packages/torch
# Twice as many as cores: many tests wait, for processes to end or for their turn at a lock.
JOBS ?= 4
# Draws the cases that `make test` runs of tests that are marked `sampled`; `make test-all` runs all.
SAMPLE ?= 1
# What is imported is compiled then; compiling all of every package takes longer than the rest.
PIP_FLAGS := --quiet --disable-pip-version-check --no-compile -c constraints.txt
# Bytecode is kept: tests start hundreds of processes, and compiling radii is a third of each start.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-all check format docs bench package clean
help:
	@echo "make demo      robustness distributions of four small networks, in under a minute"
	@echo "make test      the tests, in under six minutes on two cores; SAMPLE=N draws other cases of what repeats"
	@echo "make test-all  the slow checks too, and every case"
	@echo "make check     ruff, formatting and mypy --strict: what CI's lint step runs"
	@echo "make docs      the documentation site, in site/"
	@echo "make bench     the benchmarks; ratios measured in one run"
	@echo "make package   an sdist, and the wheel built from it, in dist/"

$(RUNS): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install $(PIP_FLAGS) torch==2.13.0
	$(BIN)/python -m pip install $(PIP_FLAGS) -e .
	rm -rf $(TORCH)/test $(TORCH)/bin/*[tT]est* $(TORCH)/include  # 190 MB of tests and C++ headers
	$(BIN)/python -c "import onnxruntime, scipy.optimize, radii.api"  # leaves bytecode of what every run imports
	touch $@

$(READY): $(RUNS) papers/pyproject.toml
	$(BIN)/python -m pip install $(PIP_FLAGS) -e '.[$(EXTRAS)]' -e papers $(TOOLS)
	touch $@

demo: $(RUNS)
	$(BIN)/radii demo

test: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --dist worksteal -m "not slow" --sample $(SAMPLE)

test-all: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -n $(JOBS) --hypothesis-profile=long

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

bench: $(READY)
	$(BIN)/python -m benchmarks

package: $(READY)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .mypy_cache .ruff_cache
