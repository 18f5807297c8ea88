# kohort: `make demo` and `make test` are all a fresh machine needs (Python 3.11+, make).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
DEMO := out/demo
MINUTES ?= 10

.PHONY: help demo test check soak bench reproduce lock clean

help:  ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-9s %s\n", $$1, $$2}'

demo: $(VENV)/base  ## protect the sample wave and say where the files are
	@$(BIN)/kohort protect deployments/plans/household.toml data/household-2026q1.parquet --out $(DEMO)

test: $(VENV)/dev  ## the tests in two halves side by side, each with its 20 slowest
	@log=$$(mktemp); \
	$(BIN)/python -m pytest --durations=20 tests/contract tests/core tests/faults > $$log 2>&1 & beside=$$!; \
	$(BIN)/python -m pytest --durations=20 --ignore=tests/contract --ignore=tests/core --ignore=tests/faults; status=$$?; \
	wait $$beside || status=$$?; cat $$log; rm -f $$log; exit $$status

check: $(VENV)/dev  ## ruff, mypy --strict on kohort/, layers, doctests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/contract/test_layers.py -q
	$(BIN)/python -m pytest --doctest-modules kohort -q

soak: $(VENV)/dev  ## the fault tests with random seeds for MINUTES=10, and their tally as a table
	$(BIN)/python tests/faults/soak.py $(MINUTES)

bench: $(VENV)/dev  ## the benchmarks: ratios measured side by side
	$(BIN)/python -m benchmarks

reproduce: $(VENV)/dev  ## docs/reproduction.md: the papers' tables anew (needs the reference files)
	$(BIN)/kohort reproduce --format markdown --out docs

lock:  ## resolve the dependencies anew (needs uv); hashes, no host names
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --custom-compile-command "make lock" --extra build -o requirements.lock pyproject.toml
	uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-annotate \
	  --custom-compile-command "make lock" --extra build --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml

clean:  ## remove the virtual environment and what demo and tests left
	rm -rf $(VENV) out build *.egg-info .pytest_cache .mypy_cache .ruff_cache

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("kohort needs Python 3.11 or newer; set PYTHON=python3.x" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

# The stamps make the second `make demo` install nothing.
$(VENV)/base: requirements.lock pyproject.toml | $(VENV)/bin/python
	@echo "installing kohort and what it needs into $(VENV) (once)"
	$(PIP) install --no-deps --require-hashes -r requirements.lock
	$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev: requirements-dev.lock $(VENV)/base
	@echo "installing the development tools into $(VENV) (once)"
	$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@touch $@
