# Everything runs in .venv, which the first target that needs it makes from requirements-dev.txt.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: help demo test check format docs bench soak lock clean

help: ## list what there is
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /	/' | expand -t 10

demo: $(READY) ## conversations in which Claude remembers: real SDK, real memories, no key needed
	@$(BIN)/commonplace demo demo-memories/$$(date +%Y-%m-%d-%H%M%S)

test: $(READY) ## all tests (ARGS="-k races" for some)
	@$(BIN)/python -m pytest -n auto --dist loadfile $(ARGS)

check: $(READY) ## format, lint, types, and whether the reference is what the code says
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/python docs/make_reference.py --check

format: $(READY) ## mend format and lint
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(READY) ## write docs/reference.md from the code
	@$(BIN)/python docs/make_reference.py

bench: $(READY) ## how fast, beside the raw system calls and the SDK's own tool (QUICK=1 for a first look)
	@$(BIN)/python bench/core.py $(if $(QUICK),--quick)

soak: $(READY) ## prove the stores for SECONDS=60 each: races, kills, faults, hostile paths (STORES="./an-empty-folder")
	@$(BIN)/python -m commonplace.testing.soak --seconds $(or $(SECONDS),60) $(or $(STORES),.soak/$$(date +%Y-%m-%d-%H%M%S))

lock: $(READY) ## pin the development requirements anew
	@$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --upgrade --generate-hashes \
		--no-emit-index-url --no-emit-find-links --no-header --quiet --output-file requirements-dev.txt

clean: ## remove what was made here
	rm -rf .venv .soak demo-memories build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -prune -exec rm -rf {} +

$(READY): requirements-dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Installing into .venv (once) ..."
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $(READY)
