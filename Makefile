# Each target sets up by itself what it needs; `make` alone lists them.
VENV = .venv
BIN = $(VENV)/bin
SETUP = scripts/setup --venv $(VENV)
# Universal, so that one lock serves every system; no address of a registry, so that each machine uses its own.
LOCK = $(UV) pip compile -q --universal --generate-hashes --no-annotate --no-header --no-emit-index-url --no-emit-find-links
UV = $$(command -v uv || echo $(BIN)/uv)
WORKERS = 2
PYTEST = $(BIN)/pytest -n $(WORKERS) --dist worksteal --durations 10 --durations-min 3
NPM_TESTS = tests/npm
# The files with tests of that mark: collecting all others takes longer than some of them run.
MARKED = $$(grep -rl --include='test_*.py' 'mark\.$(1)' tests)

.DEFAULT_GOAL := help
.PHONY: help setup environment web demo test test-web test-hostile test-whole test-slow test-npm test-browser lint format bench bench-repair lock capture release clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | while IFS='	' read -r name text; do \
		printf '  make %-10s %s\n' "$$name" "$$text"; done

environment:
	@$(SETUP)

setup: environment ## make the environment in .venv, and the page of 'pawl web' where Node.js can be had
	@scripts/web --venv $(VENV) --soft

web: environment ## build the page of 'pawl web' (scripts/web)
	@scripts/web --venv $(VENV)

demo: setup ## see it work: half a minute, no key, nothing of yours touched
	@PAWL="$(abspath $(BIN))/pawl" scripts/demo

test: environment ## run the test suite
	$(PYTEST)

test-hostile: environment ## run the tests that play attackers, crashes and broken disks
	$(PYTEST) -m 'hostile and not slow' --timeout 300 $(call MARKED,hostile)

test-whole: environment ## run the tests that play whole runs on real projects
	$(PYTEST) -m 'whole and not slow and not hostile' --timeout 300 $(call MARKED,whole)

test-slow: environment ## run the exhaustive tests that the suite leaves out
	$(PYTEST) -m slow --timeout 1800

test-npm: environment ## run the tests on real projects, which install packages
	$(PYTEST) -m npm --timeout 300 $(NPM_TESTS)

test-browser: web ## drive the page of 'pawl web' in Chromium; pictures in $PAWL_SHOTS, else in the folder for temporary files
	$(PYTEST) -n 0 -m browser --timeout 900 tests/browser

test-web: web ## check the types, the lint and the tests of the page
	cd web && PATH="$(abspath $(BIN)):$$PATH" && npm run --silent check && npx --no biome check src && npm run --silent test

lint: environment ## check format, lint, types and import direction
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy src scripts/spec_coverage
	$(BIN)/lint-imports --no-logo

format: environment ## format the code and fix what lint can fix
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: environment ## measure start, sandbox, capture, undo and a whole run
	@for name in startup sandbox capture undo do; do \
		echo "== $$name"; $(BIN)/python benchmarks/$$name.py || exit 1; done

bench-repair: environment ## measure the reflex on public bug sets: make bench-repair DATA=folder
	@test -n "$(DATA)" || { echo "make bench-repair DATA=folder (see benchmarks/repair.py)"; exit 2; }
	$(BIN)/python benchmarks/repair.py --data "$(DATA)" --set quixbugs
	$(BIN)/python benchmarks/repair.py --data "$(DATA)" --set humanevalfix
	$(BIN)/python benchmarks/repair.py --data "$(DATA)" --set mutants

lock: environment ## pin what pyproject.toml asks for (delete a lock first to move its versions)
	UV_SYSTEM_CERTS=1 $(LOCK) pyproject.toml -o requirements.lock
	UV_SYSTEM_CERTS=1 $(LOCK) pyproject.toml --group dev -c requirements.lock -o requirements-dev.lock
	UV_SYSTEM_CERTS=1 $(LOCK) --group build -o requirements-build.lock
	UV_SYSTEM_CERTS=1 $(LOCK) --group node -o requirements-node.lock

capture: environment ## draw the pictures of the docs from a session that is played
	@$(BIN)/python scripts/capture >/dev/null

release: web ## build wheel and sdist reproducibly, try them, write the notes
	@PYTHON="$(abspath $(BIN))/python" scripts/release

clean: ## remove the environments and every cache
	rm -rf $(VENV) .ci-venv .ci-shots web/node_modules src/pawl/ui/web/page .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache dist
	find . -path ./.git -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +
