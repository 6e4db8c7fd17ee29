# On a fresh machine: `make demo`, `make test` (minutes), `make test-all` (everything); `make docs` builds the documentation.
PYTHON ?= python3
SHELL := bash
ifeq ($(OS),Windows_NT)
BIN := .venv/Scripts
else
BIN := .venv/bin
endif

.PHONY: browser demo deploy-tools dist notebooks test test-all test-slow test-lowest install lint docs pages pages-check mutants rivals soak

demo: .venv/running
	$(BIN)/alexp demo --out demo

# The fast tier: about five minutes on two idle cores. tests/conftest.py lists what it leaves out; `make test-all` has it.
LEFT_OUT := PostgreSQL, servers and browsers, killed and interrupted processes, experiments, benchmarks, stand-ins for GPUs, \
  most settings of the conformance suite, code blocks of the documentation, stale pages
test: install lint
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --disable-warnings -m "not slow"
	@echo "make test leaves out: $(LEFT_OUT). make test-all runs them."

# What the fast tier leaves out.
test-slow: install browser
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 --disable-warnings -m slow

# What the tests of the dashboard need beside .venv: Debian's Chromium, if we may install it, and axe-core, if there is
# npm. Neither is a must: what is missing is skipped, and the tests say so.
AXE := 4.10.3
browser: .venv-browser/axe-$(AXE)
	@command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get -qq update \
	  && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends chromium; } >/dev/null 2>&1 || true

# What the tests of deploy/ need: proxies and a tool that builds images. Not a must either.
deploy-tools:
	apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
	  nginx-light caddy buildah mmdebstrap openssl

.venv-browser/axe-$(AXE):
	@mkdir -p .venv-browser
	@if command -v npm >/dev/null && npm install --silent --no-audit --no-fund --prefix .venv-browser axe-core@$(AXE) \
	  >/dev/null 2>&1; then touch $@; fi

lint: install
	$(BIN)/ruff check src experiments tests tools
	$(BIN)/ruff format --check src experiments tests tools
	$(BIN)/mypy

# The documentation in site/, which needs no server and no network: every code block and notebook is run, every link is
# followed. `make notebooks` makes the notebooks of the tutorials anew, with their outputs.
docs: install
	ALEXP_FULL=1 OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -n 2 tests/test_docs.py tests/test_notebooks.py tests/service/test_page.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet
	$(BIN)/python tools/site/check.py site

notebooks: install
	OPENBLAS_NUM_THREADS=1 $(BIN)/python tools/notebooks.py

# Numbers and figures of the documentation: which are stale (minutes), and what is stale made anew (up to hours). The
# list, with every command, is docs/pages.toml; PAGES='clicks headline' names entries. ALEXP_TABLES is the folder of
# real tables that some commands read, ALEXP_BOARD that of tables of words and several objectives.
pages-check: install
	$(BIN)/python tools/pages.py check $(PAGES)

pages: install
	$(BIN)/python tools/pages.py make $(PAGES)

# Everything that can be tested without hours: the tests, the documentation, and whether its numbers are still true.
test-all: test test-slow docs pages-check

# Not part of `make test`: breaks the code on purpose, more than seven hundred times, and asks whether the tests notice.
# The first command runs all tests once, and records which of them execute what.
mutants: install
	$(BIN)/python tools/mutants.py --survey --jobs 2
	$(BIN)/python tools/mutants.py --jobs 2

# Not part of `make test` either: interrupts, threads, damaged states, killed workers and more, at full size. It prints
# figures; `make pages PAGES=soak` puts them into docs/reliability.md. SOAK='--only interrupts --scale 2 --seed 7' runs some of it,
# SOAK='--only kills --into docs/reliability.md' replaces one row of the page (then `python tools/pages.py stamp soak`).
soak: install
	$(BIN)/python -m tests.adversarial.soak $(SOAK)

# What running needs: the library with its laboratory. Then, in the same place, what tests, linters and pages need.
install: .venv/installed
PIP = $(BIN)/python -m pip install --disable-pip-version-check --no-compile --no-warn-script-location --progress-bar off
SHOW = | grep --line-buffered -E '^(Collecting|Installing|Successfully)' | cut -c 1-100

.venv/running: pyproject.toml
	@echo "Installing alexp into .venv: NumPy, SciPy, Numba, pandas, Matplotlib and a few more, about a minute."
	@$(PYTHON) -m venv .venv
	@set -o pipefail; $(PIP) --editable '.[lab]' $(SHOW)
	@touch $@

.venv/installed: .venv/running pyproject.toml experiments/pyproject.toml
	@echo "Installing what tests, linters and documentation need: servers, browsers' drivers, other libraries."
	@set -o pipefail; $(PIP) --editable '.[all,test,lint,docs]' --editable 'experiments[bench]' $(SHOW)
	@touch $@

# Wheel and sdist of the library in dist/, checked, and the wheel used in an environment of its own.
dist: install
	rm -rf dist build
	$(BIN)/python -m build --outdir dist
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tools/check_dist.py dist $(VERSION)

# The tests with the oldest versions that pyproject.toml allows, in an environment of their own.
test-lowest: .venv-lowest/installed
	NUMBA_CACHE_DIR="$(CURDIR)/.venv-lowest/numba" .venv-lowest/bin/pytest -n 2 tests

.venv-lowest/installed: pyproject.toml experiments/pyproject.toml constraints/lowest.txt
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet --upgrade pip
	.venv-lowest/bin/python -m pip install --quiet --constraint constraints/lowest.txt --editable '.[all,test]' --editable 'experiments[bench]'
	touch $@

# Solvers that `alexp bench lasso` races against but that do not fit into .venv: adelie wants NumPy below 2. Nothing
# but the extra `rivals` is installed; `alexp bench` finds .venv-rivals, or what $ALEXP_RIVALS_PYTHON or --rivals names.
rivals: .venv-rivals/installed

.venv-rivals/installed: experiments/pyproject.toml
	$(PYTHON) -m venv .venv-rivals
	.venv-rivals/bin/python -c 'import tomllib; extras = tomllib.load(open("experiments/pyproject.toml", "rb"))["project"]["optional-dependencies"]; print(*extras["rivals"], sep="\n")' > .venv-rivals/requirements.txt
	.venv-rivals/bin/python -m pip install --quiet --requirement .venv-rivals/requirements.txt
	touch $@
