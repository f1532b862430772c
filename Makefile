# `make demo` shows the main job on real input, `make test` runs every check.
# Both set up .venv by themselves; needed are only make and Python >= 3.11 with venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help demo test crash bench format clean

help:
	@echo "make demo    set everything up and run the demonstration"
	@echo "make test    set everything up and run every check"
	@echo "make crash   the full crash sweep (long)"
	@echo "make bench   measure, beside mnemon-mcp if it is installed (see bench/README.md)"
	@echo "make format  format the code"
	@echo "make clean   remove the virtual environment and all caches"

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "mnemolog needs Python 3.11 or newer as $(PYTHON): sudo apt-get install -y python3 python3-venv" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "Python's venv is missing: sudo apt-get install -y python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(INSTALLED)
	$(BIN)/mnemolog demo

test: $(INSTALLED)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --numprocesses=auto --dist=worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --include='ledger/*' --fail-under=100
	$(BIN)/coverage report --fail-under=95

crash: $(INSTALLED)
	CRASH_STATES=1000000 CRASH_SYSCALLS=0 CRASH_MINUTES=10 CRASH_WRITERS=4 \
	  $(BIN)/python -m pytest -m crash --timeout=0 -s
	CRASH_STATES=1000000 $(BIN)/python -m pytest --timeout=0 tests/ledger/test_decoder_fuzz.py

bench: $(INSTALLED)
	$(BIN)/python -m bench.run all $(BENCH_OPTIONS)

format: $(INSTALLED)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .venv-* build dist .coverage .coverage.* .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache
