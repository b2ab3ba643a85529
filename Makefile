# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
# Threads that spin long while they wait are very slow on a machine with other work.
export GOMP_SPINCOUNT ?= 1000

.PHONY: demo test test-slow lint results bench picture clean

demo: $(READY)  ## protect real Cora, and audit what still leaks
	$(BIN)/graphveil demo

test: lint  ## lint, type-check, import rules, quick tests
	$(BIN)/pytest -n 2

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m slow

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

RESULTS := $(BIN)/python -m graphveil.experiments.unprotected --jobs 2 --out RESULTS.md
results: $(READY)  ## the two tables of RESULTS.md (about half an hour on two cores)
	$(RESULTS) --seeds 5
	$(RESULTS) --kept labels --seeds 20 --table "labels, 20 splits"

bench: $(READY)  ## docs/benchmark.md: rounds, runs and splits against plain PyG and the lower bound (about 20 minutes)
	env -u GOMP_SPINCOUNT $(BIN)/python -m benchmarks --out docs

picture: $(READY)  ## the picture in the README
	$(BIN)/python examples/picture.py docs/before_after.png

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
