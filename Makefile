# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.installed
DOCS_READY := .venv/.installed-docs
# Threads that spin long while they wait are very slow on a machine with other work.
export GOMP_SPINCOUNT ?= 1000

.PHONY: demo test test-slow coverage lint audit wheel docs results readme bench picture clean

demo: $(READY)  ## protect real Cora, audit what still leaks, and write a report
	$(BIN)/graphveil demo

test: lint  ## lint, type-check, import rules, quick tests
	$(BIN)/pytest -n 2

test-slow: $(READY)  ## the tests that take minutes
	$(BIN)/pytest -n 2 -m slow

coverage: $(READY)  ## the lines and branches of src that the quick tests reach; fails below 92 %
	$(BIN)/pytest -n 2 --cov --cov-report=term

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(READY)  ## ask whether an installed package has a known vulnerability
	$(BIN)/python -m tools.dependencies

wheel: $(READY)  ## build the wheel and use it outside the repository, with the installed and with the lowest versions
	$(BIN)/python -m tools.wheel
	$(BIN)/python -m tools.wheel --lowest

docs: $(DOCS_READY)  ## build/docs: the pages of docs/, the notebooks run, the reference from the docstrings
	mkdir -p build
	$(BIN)/python -m typer graphveil.cli utils docs --name graphveil --output build/verbs.md
	sed -n '/^## /,$$p' build/verbs.md > build/command-line.md
	$(BIN)/sphinx-build --quiet --fresh-env --fail-on-warning --keep-going --nitpicky -c docs . build/docs

results: $(READY)  ## RESULTS.md, docs/report.html and README.md: all of the paper (wants a GPU)
	$(BIN)/graphveil reproduce all --device auto --results RESULTS.md
	cp runs/paper/report.html docs/report.html
	$(BIN)/python -m tools.readme

readme: $(READY)  ## the results in the README, from the tables of RESULTS.md
	$(BIN)/python -m tools.readme

bench: $(READY)  ## docs/benchmark.md: rounds, runs and splits against plain PyG and the lower bound (about 30 minutes)
	env -u GOMP_SPINCOUNT $(BIN)/python -m benchmarks --out docs

picture: $(READY)  ## the pictures in the README; the second one needs Chromium
	$(BIN)/python examples/picture.py docs/before_after.png
	$(BIN)/graphveil tune cora --max-leak +2 --out runs/tuned
	chromium --headless --no-sandbox --hide-scrollbars --window-size=1280,725 --screenshot=docs/page.png runs/tuned/report.html

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[dev]"
	touch $@

$(DOCS_READY): $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e ".[docs]"
	touch $@

clean:
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .import_linter_cache build dist
