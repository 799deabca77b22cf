# Everything here needs Python 3.11 or newer and make; `make setup` brings the rest.
# PYTHON chooses the interpreter that `.venv` is made with; ARGS goes to the command behind
# demo, bench, hammer, soak and e2e, as in `make demo ARGS='--once --json'`.

PYTHON ?= $(shell command -v python3.11 || command -v python3)
ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup lock demo test check format e2e bench bench-fold hammer soak clean

help: ## what can be made
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

setup: $(STAMP) ## make .venv with the pinned packages (a moment when it is up to date)

# The lock names every package with its hash, so a changed archive is refused, not installed.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Foldgate needs Python 3.11 or newer: make setup PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@echo "installing the pinned packages (a minute, the first time)"
	$(BIN)/python -m pip install --quiet --require-hashes --requirement constraints.txt
	$(BIN)/python -m pip install --quiet --quiet --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(STAMP) ## a conversation far longer than a real llama-server's window, watched live
	$(BIN)/foldgate demo $(ARGS)

test: $(STAMP) ## every test that needs nothing but this machine
	$(BIN)/pytest -n auto --dist worksteal $(ARGS)

check: $(STAMP) ## the gate: format, lint, types, floors, and the pure room covered in full
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict policies gateway bench
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto --dist worksteal tests/policies \
		--cov=policies --cov-branch --cov-fail-under=100

format: $(STAMP) ## lay the code out as the gate wants it
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

# Fifty kills take longer than a test that hangs may.
e2e: $(STAMP) ## real servers: llama-server, kill -9, the official client
	$(BIN)/pytest tests/e2e -m e2e -o faulthandler_timeout=1800 $(ARGS)

bench: $(STAMP) ## measure the gateway beside a bare relay
	$(BIN)/python -m bench $(ARGS)

bench-fold: $(STAMP) ## what the turn after a fold costs, on a real llama-server
	$(BIN)/python -m bench.fold $(ARGS)

hammer: $(STAMP) ## many clients on few slots of a real llama-server, every reply proved
	$(BIN)/python -m bench.hammer $(ARGS)

soak: $(STAMP) ## kill the gateway a hundred times under people who talk, and count what was lost
	$(BIN)/python -m bench.soak $(ARGS)

# dev asks for foldgate[demo]: the project itself has no hash and leaves the list again.
COMPILE = $(VENV)/lock/bin/pip-compile --quiet --strip-extras --allow-unsafe --generate-hashes \
	--no-emit-find-links --no-emit-index-url --no-header

lock: ## pin every package anew, as pyproject.toml allows (pins that still fit stay)
	$(PYTHON) -m venv $(VENV)/lock
	$(VENV)/lock/bin/python -m pip install --quiet 'pip-tools>=7.5'
	$(COMPILE) --all-extras --output-file constraints.txt pyproject.toml
	sed -i '/^# WARNING: pip install will/,/^    # via foldgate (pyproject.toml)/d' constraints.txt
	$(COMPILE) --build-deps-for wheel --constraint constraints.txt \
		--output-file deploy/requirements.txt pyproject.toml

clean: ## remove what was made here, .venv included
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis \
		.coverage htmlcov build dist
