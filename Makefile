# Needs python3 (3.11 or newer), make and a package registry; everything else lives in .venv.
#
#   make setup   create .venv and install tightrope with its development tools
#   make demo    the rover story: build, simulate, learn with all sets but coupled; results under demo-output/
#   make test    ruff, strict types, import contracts, pytest; reports are tested in a browser
#   make test-gpu the tests of the CUDA backend on this machine's GPU (needs tightrope[gpu])
#   make compiler install Debian's g++ for the tests of the CUDA kernels, where there is no C++ compiler (as root)
#   make browser install Debian's chromium for these tests, where there is no Chromium (as root)
#   make lint    the first three of these; `make test` compiles kernels beside them
#   make pytest  the last of these alone
#   make docs    the site, under build/site; every link and reference must lead somewhere
#   make pages   run the code of the pages again, and write their outputs and figures anew
#   make format  apply the house formatting
#   make schemas write the JSON schemas again, after a change of formats/documents
#   make bench   every script of benchmarks/, results under bench-results/
#   make clean   remove what the above created

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=

.PHONY: setup demo test pytest warm test-gpu lint format docs pages schemas bench clean browser compiler
.DEFAULT_GOAL := setup

setup: $(STAMP)

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tightrope needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "hint: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/tightrope demo -o demo-output

test: $(STAMP) browser compiler
	@$(MAKE) --no-print-directory -j 2 lint warm
	@$(MAKE) --no-print-directory pytest

warm: $(STAMP)  # compile what the tests need once, not once per worker
	$(BIN)/tightrope warmup

pytest: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal $(PYTEST_ARGS)

test-gpu: $(STAMP)
	TIGHTROPE_DEVICE=cuda $(BIN)/python -m pytest -q tests/test_cuda_kernels.py tests/test_cuda_solve.py tests/test_cuda_device.py -n 4 $(PYTEST_ARGS)

compiler:
	@command -v g++ >/dev/null || command -v clang++ >/dev/null || command -v c++ >/dev/null || { \
	  test "$$(id -u)" = 0 || { echo "the tests of the CUDA kernels need a C++ compiler: install g++, or run 'make compiler' as root" >&2; exit 1; }; \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends g++; }

browser:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || command -v google-chrome >/dev/null || { \
	  test "$$(id -u)" = 0 || { echo "the tests of reports need Chromium: install it, or run 'make browser' as root" >&2; exit 1; }; \
	  apt-get update -q && DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends chromium fonts-dejavu-core; }

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: $(STAMP)
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	@echo "the site is build/site/index.html"

pages: $(STAMP)
	$(BIN)/python docs/_tools/run_pages.py --write docs/start/*.md docs/tutorials/*.md docs/how-to/*.md

schemas: $(STAMP)
	$(BIN)/python -m tightrope.formats.documents.schemas docs/schemas

bench: $(STAMP)
	@mkdir -p bench-results
	@missed=; for script in benchmarks/*.py; do \
	  echo "== $$script"; $(BIN)/python "$$script" || missed="$$missed $$script"; done; \
	  test -z "$$missed" || { echo "goals missed in:$$missed" >&2; exit 1; }

clean:
	rm -rf $(VENV) build dist bench-results demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
