# Two commands on a fresh machine do everything: `make demo` and `make test`.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test install lint mutants

demo: install
	$(BIN)/alexp demo --out demo

test: install lint
	$(BIN)/pytest -n 2

lint: install
	$(BIN)/ruff check src tests tools
	$(BIN)/ruff format --check src tests tools
	$(BIN)/mypy

# Not part of `make test`: breaks the code on purpose, some two hundred times, and asks whether the tests notice.
mutants: install
	$(BIN)/python tools/mutants.py --jobs 2

install: .venv/installed

.venv/installed: pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[all,test]'
	touch $@
