# make install   the core and the command line, in .venv
# make demo      the main job in a minute (no PyTorch needed)
# make test      lint, types and tests
# make slow-test the long versions of the tests as well
# make core-test what must work without any extra, in .venv-core

# The first Python on the path that is new enough; `make PYTHON=...` overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
CORE := .venv-core
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
EXTRAS := dev,train,identify,menagerie,compile,record,franka,dynamixel,ur,ros2,rl,mink
PIECES := pyproject.toml constraints.txt

.PHONY: help install demo test slow-test core-test lint types clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

install: $(VENV)/.core

demo: install
	@$(BIN)/retorque demo

test: lint types
	@echo "pytest"
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

slow-test: export RETORQUE_SLOW := 1
slow-test: test

core-test: $(CORE)/.core
	@echo "core"
	@$(CORE)/bin/python tests/core_smoke.py

lint: $(VENV)/.full
	@echo "ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.full
	@echo "mypy"
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) $(CORE) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "Retorque needs Python 3.11 or newer; install one, or name it: make PYTHON=..." >&2; exit 1; }
	@echo "making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)

# Each stamp says which pieces an environment was made of, so that a second run installs nothing.
$(VENV)/.core: $(PIECES) | $(BIN)/python
	@echo "installing Retorque into $(VENV)"
	@$(PIP) install -c constraints.txt -e .
	@touch $@

$(VENV)/.full: $(PIECES) | $(BIN)/python
	@echo "installing Retorque with $(EXTRAS) into $(VENV)"
	@$(PIP) install -c constraints.txt -e '.[$(EXTRAS)]'
	@touch $@ $(VENV)/.core

$(CORE)/.core: $(PIECES)
	@echo "installing Retorque without extras into $(CORE)"
	@test -x $(CORE)/bin/python || $(PYTHON) -m venv $(CORE)
	@$(CORE)/bin/python -m pip --disable-pip-version-check -qq install -c constraints.txt -e .
	@touch $@
