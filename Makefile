# make install   the core and the command line, in .venv
# make demo      the main job in a minute (no PyTorch needed)
# make test      lint, types and tests

# The first Python on the path that is new enough; `make PYTHON=...` overrides.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
EXTRAS := dev,train,identify,menagerie
PIECES := pyproject.toml constraints.txt

.PHONY: help install demo test lint types clean

help:
	@sed -n 's/^# \(make .*\)/\1/p' Makefile

install: $(VENV)/.core

demo: install
	@$(BIN)/retorque demo

test: lint types
	@echo "pytest"
	@OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --dist worksteal

lint: $(VENV)/.full
	@echo "ruff"
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

types: $(VENV)/.full
	@echo "mypy"
	@$(BIN)/mypy

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache .mypy_cache .hypothesis

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
