# One verb each; `make help` lists them. Needs only make and Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DATA ?= data
# By file, in the order of names: the long ones (acceptance, fault) begin first, and no process is left alone at the end.
SPREAD := -n 2 --dist loadfile --no-loadscope-reorder
STAMP := $(VENV)/.installed

.DEFAULT_GOAL := help
.PHONY: help setup run demo test check lint golden format bench clean

help: ## list the targets
	@grep -E '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  \1\t/' | expand -t 12

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (PYTHON=python3.12 make …)"; exit 1; }
	@echo "setting up $(VENV) (once, about a minute)"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip --quiet --disable-pip-version-check install --editable '.[embedded,local,motor,httpx,dev]'
	@touch $@

setup: $(STAMP) ## create .venv with everything in it

run: setup ## embedded database, sample data and the worker; Ctrl-C ends it
	@$(BIN)/python -m worker run --embedded --data $(DATA) --sample deploy/sample

demo: setup ## a story that ends by itself: edit, hide, delete, rename, and what search answers
	@$(BIN)/python -m worker demo --sample deploy/sample

lint: setup ## ruff, pyright (strict), import-linter
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/basedpyright --level warning
	@$(BIN)/lint-imports

check: lint ## the quick part of the tests (under two minutes)
	@$(BIN)/python -m pytest -q $(SPREAD) -m 'not slow' tests/unit tests/property tests/contract

test: lint ## everything
	@$(BIN)/python -m pytest -q $(SPREAD)

golden: setup ## write what models are told of the tools (tests/golden); read the diff
	@$(BIN)/python -m tests.support.golden

format: setup ## let ruff rewrite what it can
	@$(BIN)/ruff check --fix-only .
	@$(BIN)/ruff format .

bench: setup ## measure; nothing is asserted
	@$(BIN)/python -m tests.bench --with-cocoindex --with-engines

clean: ## remove what make created (not the data folder)
	@rm -rf $(VENV) .ruff_cache .pytest_cache .import_linter_cache .hypothesis
