# `make` alone lists the targets. They run in a virtual environment, which the first of them creates; `demo` and `figures` use the
# environment that is active, if bitextmine is installed there.
#
#   VENV=.venv             the folder of that environment (kept and reused, whatever torch it holds)
#   TORCH=torch==2.13.0    install this torch first: a version, a local wheel, pip options
#   PYTHON=python3.12      the interpreter that creates the environment (3.11 or newer)
#   PY=python              use this interpreter and install nothing
#   PYTHONS='python3.11 python3.12'   the interpreters of `make wheel-test` (default: PYTHON)
#   JOBS=4                 processes that run the tests (default: one per CPU, at most eight; 0: pytest alone)
#   DATA=FOLDER            the benchmarks for `make figures`

PYTHON ?= python3
VENV   ?= .venv
TORCH  ?=

# Without an NVIDIA GPU, PyTorch's CPU build is enough and gigabytes smaller. macOS has no other.
CPU_INDEX := https://download.pytorch.org/whl/cpu
NVIDIA    := $(wildcard /proc/driver/nvidia/version /dev/nvidia0 /dev/dxg)

ACTIVE := $(shell python -P -c 'import importlib.metadata as m, sys; m.version("bitextmine"); print(sys.executable)' 2>/dev/null)

ifdef PY
  RUN := $(PY)
else ifneq ($(and $(ACTIVE),$(filter demo figures,$(MAKECMDGOALS))),)
  RUN := $(ACTIVE)
else
  RUN := $(VENV)/bin/python
  APP := $(VENV)/.bitextmine-app
endif
ifndef PY
  PY  := $(VENV)/bin/python
  DEV := $(VENV)/.bitextmine-dev
endif

.DEFAULT_GOAL := help
.PHONY: help demo test lint figures wheel wheel-test clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 18

demo: $(APP) ## mine the sample corpora: pairs, precision, recall, F1, P@1 and time
	@PY=$(RUN) bash mine/demo.sh

test: lint ## ruff, mypy and all tests: some 5 minutes on two cores
	$(PY) -m pytest -n $(or $(JOBS),auto) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

lint: $(DEV) ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	MYPY_NUM_WORKERS=2 $(PY) -m mypy

figures: $(APP) ## run the benchmarks behind the first table of train/quality.md: make figures DATA=FOLDER
	@PY=$(RUN) bash mine/figures.sh $(DATA)

wheel: $(DEV) ## build dist/bitextmine-*.whl, for x86-64 and aarch64, with the compiled modules inside
	.ci/wheels $(PY)

wheel-test: wheel ## install that wheel into an empty environment of each of PYTHONS, and mine the samples there
	TORCH='$(TORCH)' .ci/wheel-test $(or $(PYTHONS),$(PYTHON))

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist bitextmine.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@echo "make: creating $(VENV), to install PyTorch, bitextmine and their dependencies there"
	$(PYTHON) -m venv $(VENV)

# An installed torch satisfies the package; only an empty environment downloads one.
define first_torch
$(if $(TORCH),$(VENV)/bin/python -m pip install $(TORCH),$(if $(NVIDIA),,$(VENV)/bin/python -m pip show --quiet torch \
	    2>/dev/null || $(VENV)/bin/python -m pip install --retries 1 --timeout 20 torch --index-url $(CPU_INDEX) || \
	    echo "make: no PyTorch CPU build at $(CPU_INDEX): using the package index"))
endef

$(VENV)/.bitextmine-app: pyproject.toml | $(VENV)/bin/python
	$(first_torch)
	$(VENV)/bin/python -m pip install --editable .
	@touch $@

$(VENV)/.bitextmine-dev: pyproject.toml | $(VENV)/bin/python
	$(first_torch)
	$(VENV)/bin/python -m pip install --no-compile --editable '.[dev]'
	@touch $@ $(VENV)/.bitextmine-app
