# The two commands that matter: `make run` and `make test`. Both set up all they need.

PYTHON ?= python3
BIN := .venv/bin
# Compiled modules make every process start faster; some machines forbid to keep them.
export PYTHONDONTWRITEBYTECODE :=
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
PACKAGE := pyproject.toml src/lexarium/__init__.py

# More processes than cores: some of them always wait for a server. A module stays in one, so that its servers start once.
# Modules run in the order of `tests/conftest.py`.
PROCESSES_PER_CORE = 2
PYTEST = -m pytest -n $$(($$(getconf _NPROCESSORS_ONLN) * $(PROCESSES_PER_CORE))) --dist loadscope --no-loadscope-reorder \
	--durations=10

.PHONY: run test test-all test-rest coverage screenshots lint docs bench torture audit bom setup develop lock clean

run: setup
	$(BIN)/lexarium serve --sample

# What a change is likely to break, in minutes.
test: develop .tools/ready
	$(BIN)/python $(PYTEST) -m "not full"

# Everything: both engines throughout, all browser tests, standbys, outages, long property tests. More of these tests wait.
test-all test-rest: PROCESSES_PER_CORE = 3
test-all: develop .tools/ready .venv-nimare/ready .venv-linkml/ready
	$(BIN)/python $(PYTEST) -m "not short"

# What `make test-all` adds to `make test`.
test-rest: develop .tools/ready .venv-nimare/ready .venv-linkml/ready
	$(BIN)/python $(PYTEST) -m full

# The lines of src that `make test-all` runs, servers and commands included; MARK="not full" for `make test` alone.
coverage: MARK = not short
coverage: develop .tools/ready .venv-nimare/ready .venv-linkml/ready
	$(BIN)/coverage erase
	$(BIN)/coverage run $(PYTEST) -m "$(MARK)"
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --format=total

# Pictures of the pages that the browser tests open, in .screenshots.
screenshots: develop .tools/ready
	mkdir -p .screenshots
	LEXARIUM_SCREENSHOTS=$$PWD/.screenshots $(BIN)/python $(PYTEST) tests/pages/test_browser*.py

lint: develop
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/lint-imports

# The documentation as a site, in build/docs.
docs: develop
	$(BIN)/python -m sphinx --fail-on-warning --keep-going --quiet docs build/docs

bench: develop
	$(BIN)/python -m benchmarks.read
	$(BIN)/python -m benchmarks.write
	$(BIN)/python -m benchmarks.search
	$(BIN)/python -m benchmarks.relevance
	$(BIN)/python -m benchmarks.annotate
	$(BIN)/python -m benchmarks.import_export
	$(BIN)/python -m benchmarks.scaling
	$(BIN)/python -m benchmarks.pages
	$(BIN)/python -m benchmarks.growth

torture: develop
	$(BIN)/python -m torture.crash
	$(BIN)/python -m torture.import_crash
	$(BIN)/python -m torture.request_fuzz
	$(BIN)/python -m torture.import_fuzz
	$(BIN)/python -m torture.overload
	$(BIN)/python -m torture.cached_responses

# What is known to be wrong with the locked packages, and a list of all of them.
audit: develop
	$(BIN)/python -m supply.audit

bom: develop
	mkdir -p dist
	$(BIN)/python -m supply.bom dist/bom.json

setup: .venv/set-up
develop: .venv/developed

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Lexarium needs Python 3.11 or newer; name one with PYTHON=...")'
	$(PYTHON) -m venv .venv
	touch $@

.venv/set-up: .venv/made requirements.txt $(PACKAGE)
	@echo "Installing Lexarium into .venv, which takes a few minutes ..."
	$(PIP) install --require-hashes -r requirements.txt
	$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

.venv/developed: .venv/set-up requirements-dev.txt
	@echo "Installing the tools for tests and checks, which takes a few minutes ..."
	$(PIP) install --require-hashes -r requirements-dev.txt
	touch $@

# The test of NiMARE skips where it cannot be installed.
.venv-nimare/ready:
	$(PYTHON) -m venv --clear .venv-nimare
	.venv-nimare/bin/python -m pip --disable-pip-version-check --quiet install nimare==0.22.1 && touch $@ || true

# LinkML has its own environment because a package that it needs installs a plug-in of pytest. rdflib comes with it, and
# pronto reads what we export. Their tests skip without it.
.venv-linkml/ready:
	$(PYTHON) -m venv --clear .venv-linkml
	.venv-linkml/bin/python -m pip --disable-pip-version-check --quiet install linkml-runtime==1.12.1 pronto==2.7.4 && touch $@ || true

.tools/ready: tests/install_tools.sh
	sh tests/install_tools.sh || echo "Not every program could be installed: the tests that need one skip and name it."

# Lock files with hashes, and no word of where the packages come from.
COMPILE := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" pyproject.toml --group build

lock: develop
	$(COMPILE) -o requirements.txt
	$(COMPILE) --group dev -o requirements-dev.txt

clean:
	rm -rf .venv .venv-lowest .venv-nimare .venv-linkml .tools .coverage .bench .screenshots dist build

# Nested Turtle, read within a second per megabyte.
.PHONY: bench-nesting
bench: bench-nesting
bench-nesting: develop
	$(BIN)/python -m benchmarks.nesting

# The short suite with the lowest versions that pyproject.toml allows, in an environment of its own.
SHORT := tests/contract/test_contract.py tests/store/test_store.py tests/v1/test_v1.py tests/pages/test_pages.py tests/formats/test_import.py \
	tests/formats/test_export.py tests/search/test_search.py
LOWEST_PIP := .venv-lowest/bin/python -m pip --disable-pip-version-check --quiet

.PHONY: test-lowest lock-lowest
test-lowest: .venv-lowest/installed
	.venv-lowest/bin/python $(PYTEST) -m "not full" $(SHORT)

.venv-lowest/installed: requirements-lowest.txt requirements-dev.txt $(PACKAGE)
	$(PYTHON) -m venv --clear .venv-lowest
	$(LOWEST_PIP) install --require-hashes -r requirements-dev.txt
	$(LOWEST_PIP) install --require-hashes --no-deps -r requirements-lowest.txt
	$(LOWEST_PIP) install --no-deps --no-build-isolation --editable .
	touch $@

lock: lock-lowest
lock-lowest: develop
	$(COMPILE) --resolution lowest-direct -o requirements-lowest.txt
