# The two commands that matter: `make run` and `make test`. Both set up all they need.

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGE := pyproject.toml src/lexarium/__init__.py

.PHONY: run test lint bench torture setup develop lock clean

run: setup
	$(BIN)/lexarium serve --sample

test: develop
	$(BIN)/pytest -n auto

lint: develop
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: develop
	$(BIN)/python -m benchmarks.read
	$(BIN)/python -m benchmarks.write
	$(BIN)/python -m benchmarks.find
	$(BIN)/python -m benchmarks.annotate
	$(BIN)/python -m benchmarks.grow

torture: develop
	$(BIN)/python -m torture.crash

setup: .venv/set-up
develop: .venv/developed

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lexarium needs Python 3.11 or newer; name one with PYTHON=...")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/set-up: .venv/made requirements.txt $(PACKAGE)
	$(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

.venv/developed: .venv/set-up requirements-dev.txt
	$(PIP) install --require-hashes -r requirements-dev.txt
	touch $@

# Lock files with hashes, and no word of where the packages come from.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml --group build

lock: develop
	$(COMPILE) -o requirements.txt
	$(COMPILE) --group dev -o requirements-dev.txt

clean:
	rm -rf .venv .bench dist build
