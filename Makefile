# `make` alone lists the targets. Everything runs in a virtual environment that the first target makes.
#
#   VENV=.venv             where that environment is (kept and reused, whatever torch it holds)
#   TORCH=torch==2.13.0    install this torch first: a version, a local wheel, pip options, several words
#   PYTHON=python3.12      the interpreter that makes the environment (3.11 or newer)
#   PY=python              use this interpreter and install nothing
#   JOBS=4                 so many processes run the tests (default: one for each processor; 0: no other than pytest)

PYTHON ?= python3
VENV   ?= .venv
TORCH  ?=

# Where there is no NVIDIA GPU, PyTorch's CPU build does, and is gigabytes smaller. macOS has no other.
CPU_INDEX := https://download.pytorch.org/whl/cpu
NVIDIA    := $(wildcard /proc/driver/nvidia/version /dev/nvidia0 /dev/dxg)

ifdef PY
  APP :=
  DEV :=
else
  PY  := $(VENV)/bin/python
  APP := $(VENV)/.bitextmine-app
  DEV := $(VENV)/.bitextmine-dev
endif

.DEFAULT_GOAL := help
.PHONY: help demo test lint wheel clean

help: ## list the targets
	@sed -n 's/^\([a-z]*\): .*## \(.*\)/make \1\t\2/p' $(firstword $(MAKEFILE_LIST)) | expand -t 14

demo: $(APP) ## mine the sample corpora: pairs, precision, recall, F1, P@1 and the time taken
	@PY=$(PY) bash mine/demo.sh

test: lint ## ruff, mypy, then every test: some 15 minutes on two cores
	$(PY) -m pytest -n $(or $(JOBS),auto) --maxprocesses 8 --dist loadfile --no-loadscope-reorder

lint: $(DEV) ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

wheel: $(DEV) ## build dist/bitextmine-*.whl, for x86-64 and aarch64, with the compiled modules inside
	.ci/wheels $(PY)

clean: ## remove the environment and everything that was built
	rm -rf $(VENV) build dist bitextmine.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# A torch that is there already satisfies the package, so that only an empty environment downloads one.
define first_torch
$(if $(TORCH),$(VENV)/bin/python -m pip install $(TORCH),$(if $(NVIDIA),,$(VENV)/bin/python -m pip show --quiet torch \
	    2>/dev/null || $(VENV)/bin/python -m pip install --retries 1 --timeout 20 torch --index-url $(CPU_INDEX) || \
	    echo "make: PyTorch's CPU build cannot be had from $(CPU_INDEX): taking the package index's"))
endef

$(VENV)/.bitextmine-app: pyproject.toml | $(VENV)/bin/python
	$(first_torch)
	$(VENV)/bin/python -m pip install --editable .
	@touch $@

$(VENV)/.bitextmine-dev: pyproject.toml | $(VENV)/bin/python
	$(first_torch)
	$(VENV)/bin/python -m pip install --editable '.[dev]'
	@touch $@ $(VENV)/.bitextmine-app
