# Needs python3 (3.11 or newer), make and a package registry; everything else lives in .venv.
#
#   make setup       create .venv and install tightrope with its development tools
#   make demo        the rover story: build, simulate, learn with all sets but coupled; results under demo-output/
#   make test        ruff, strict types, import contracts, pytest; reports are tested in a browser. Tests whose programs are
#                    missing are not run and named in the end; that is an error only where CI=true
#                    TIGHTROPE_WHOLE=1 make test: also what takes long and all of many like cases (marks thinned, long, costly), and the site
#   make quick       a minute for the inner loop: linters, types by cache, a few hundred fast tests and the changed ones
#   make system-deps a browser, a C++ compiler, OCaml and Java, which some tests need: installs them (Debian, as root) or names them
#   make spark       PySpark, where there is Java: 'make test' runs it
#   make proved      the proved checker: proofs, what they assume, extraction, the program and its tests (OCaml and Coq)
#   make proved-recheck  its proofs once more, by Coq's kernel alone
#   make test-gpu    the tests of the CUDA backend on this machine's GPU (needs tightrope[gpu])
#   make test-lowest the fast tests with the oldest dependencies that pyproject.toml allows
#   make test-matrix the tests with every Python from 3.11 to 3.13 that is found
#   make test-other-architecture  the tests of certificates' numbers as x86-64 on Arm and the other way round, emulated (minutes)
#   make coverage    lines and branches that the tests reach, under build/coverage
#   make lint        ruff, strict types, import contracts; in `make test` beside the others
#   make pytest      the tests alone
#   make docs        the site, under build/site; every link and reference must lead somewhere
#   make pages       run the code of the pages again, and write their outputs and figures anew
#   make dist        wheels and sdists of tightrope and its campaigns, and a wheel of the checker alone, under dist/, each installed into a clean environment and tried from outside;
#                    a wheel with compiled kernels for $(PYTHON)'s version, or for those in KERNELS_FOR="python3.11 python3.12 python3.13"
#   make release     all that a release is checked by, from a clean clone: tests, lowest versions, site, wheels (dist/ and build/site)
#   make format      apply the house formatting
#   make schemas     write the JSON schemas again, after a change of a record in io
#   make bench       every script of benchmarks/, results under bench-results/
#   make clean       remove what the above created

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST_ARGS ?=
KERNELS_FOR ?=
UV := uv==0.13.7
TYPES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/tightrope/mypy
DEPS := sh tools/system_deps.sh
LOWEST := build/venv-lowest
TEST_TOOLS = $$(sed -n 's|^ *"\([a-z-]*==[^"]*\)",|\1|p' pyproject.toml | grep -E "^(pytest|hypothesis|gymnasium|stormpy|umbi|bitstring|polars|fsspec)") pandas

# Tests start hundreds of processes: each would compile the package's modules anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: setup demo test quick quick-tests pytest warm warm-pytest lint-aside test-gpu test-lowest test-matrix test-other-architecture coverage lint format docs pages schemas
.PHONY: dist release bench clean system-deps spark proved proved-recheck proved-checker
.DEFAULT_GOAL := setup

setup: $(STAMP)

$(STAMP): pyproject.toml campaigns/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tightrope needs Python 3.11 or newer, but '$(PYTHON)' is $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "hint: make setup PYTHON=python3.12" >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing tightrope and its development tools into $(VENV)"
	@$(call install,$(BIN),-e '.[dev]' -e ./campaigns)
	@touch $(STAMP)

# $(call install,BIN,WHAT): by uv, which takes a third of the time, or by pip where uv cannot be had or reaches no registry.
define install
{ $(1)/python -m pip install --quiet --disable-pip-version-check $(UV) \
  && $(1)/uv pip install --quiet --python $(1)/python $(2); } \
|| { echo "uv did not do it; now by pip" && $(1)/python -m pip install --quiet --disable-pip-version-check $(2); }
endef

demo: $(STAMP)  # kernels that are not there yet are compiled on two cores
	@$(BIN)/python -c "from tightrope.cli.warmup import run_example; run_example('cyclic models')" >/dev/null 2>&1 & \
	  $(BIN)/tightrope demo -o demo-output; status=$$?; wait; exit $$status

test: $(STAMP)
	@$(DEPS) install || echo "== the other tests run first"
	@$(MAKE) --no-print-directory spark
	@case "$$($(DEPS) markers)" in *ocaml*) ;; *) $(MAKE) --no-print-directory proved-checker ;; esac
	@$(MAKE) --no-print-directory -j 2 --keep-going lint-aside warm-pytest \
	  || { test -e build/lint.ok || { echo "== what the linters say" && cat build/lint.log; }; exit 1; }
	@$(DEPS) summary

lint-aside:  # beside the tests; its words in one piece
	@mkdir -p build && rm -f build/lint.ok
	@MAKEFLAGS= make lint >build/lint.log 2>&1 && touch build/lint.ok; cat build/lint.log; test -e build/lint.ok

warm-pytest: warm
	@$(MAKE) --no-print-directory pytest

system-deps:
	@$(DEPS) install

SPARK := pyspark==4.3.0
spark: $(STAMP)  # half a gigabyte: not for those who have no Java
	@! command -v java >/dev/null 2>&1 || $(BIN)/python -c "import pyspark" 2>/dev/null \
	  || { echo "installing $(SPARK) for the tests of logs on Spark" && $(call install,$(BIN),$(SPARK)); } \
	  || echo "== $(SPARK) cannot be installed: tests of logs on Spark are not run"

proved: $(STAMP)
	@$(DEPS) install proofs
	@$(MAKE) --no-print-directory -C proved
	TIGHTROPE_WHOLE=1 $(BIN)/python -m pytest -q tests/certify/test_proved.py $(PYTEST_ARGS)

proved-recheck:
	@$(DEPS) check proofs
	@$(MAKE) --no-print-directory -C proved recheck

proved-checker:  # from the committed OCaml
	@$(MAKE) --no-print-directory -C proved checker

quick: $(STAMP)
	@$(MAKE) --no-print-directory -j 2 lint quick-tests

quick-tests: $(STAMP)
	$(BIN)/python -m pytest -q -x $$( (cat tests/quick.txt; git diff --name-only --diff-filter=d HEAD -- tests; \
	  git ls-files --others --exclude-standard tests) 2>/dev/null | grep '/test_[a-z0-9_]*\.py$$' | sort -u) $(PYTEST_ARGS)

warm: $(STAMP)  # compile what the tests need once, not once per worker
	@$(BIN)/python -m compileall -q -j 0 src campaigns/src tests
	$(BIN)/tightrope warmup

# Asserts are not rewritten, which would take every worker half a minute; those that fail are told again in full.
pytest: $(STAMP)
	@$(call tests,--assert=plain -n auto --maxprocesses 8 --dist worksteal) || { \
	  echo "== those that failed again, with what they compared" && $(call tests,--last-failed --last-failed-no-failures none); exit 1; }

tests = $(BIN)/python -m pytest -q $(1) -m "$$($(DEPS) markers)" $(PYTEST_ARGS)

test-gpu: $(STAMP)
	TIGHTROPE_WHOLE=1 TIGHTROPE_DEVICE=cuda $(BIN)/python -m pytest -q tests/solver/test_cuda_kernels.py tests/solver/test_cuda_solve.py tests/solver/test_cuda_device.py -n 4 $(PYTEST_ARGS)

lint: $(STAMP)  # a new clone starts from what the last one knew of types; files are compared by content
	$(BIN)/ruff check .
	$(BIN)/ruff format --check --quiet .
	@test -d .mypy_cache || cp -R "$(TYPES)" .mypy_cache 2>/dev/null || true
	$(BIN)/mypy
	@mkdir -p "$(TYPES)" && cp -R .mypy_cache "$(TYPES).$$$$" && rm -rf "$(TYPES)" && mv -T "$(TYPES).$$$$" "$(TYPES)" || rm -rf "$(TYPES).$$$$"
	$(BIN)/lint-imports --no-logo

format: $(STAMP)
	$(BIN)/ruff format .

coverage: $(STAMP)
	$(BIN)/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal -m "$$($(DEPS) markers)" \
	  --cov --cov-report=html:build/coverage --cov-report=xml:build/coverage.xml --cov-report=term:skip-covered $(PYTEST_ARGS)

# Runtime dependencies at their lowest versions; the tools of the tests as pinned. Left out: what looks at the development
# environment, and the text of the schemas, which newer versions of msgspec write otherwise.
test-lowest:
	@test -x $(LOWEST)/bin/python || $(PYTHON) -m venv $(LOWEST)
	@$(call install,$(LOWEST)/bin,-e . -e ./campaigns -c tools/lowest.txt $(TEST_TOOLS))
	NUMBA_CACHE_DIR=$(LOWEST)/kernels $(LOWEST)/bin/python -m pytest -q $$(grep -v test_repository tests/quick.txt) \
	  --deselect tests/io/test_documents.py::test_schemas_are_current $(PYTEST_ARGS)

test-other-architecture: $(STAMP)
	@sh tools/other_architecture.sh $(TESTS)

test-matrix:
	@sh tools/test_matrix.sh $(PYTEST_ARGS)

dist: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist campaigns
	$(BIN)/python -m build --wheel --outdir dist checker
	$(BIN)/python tools/wheel_kernels.py dist/tightrope-*-py3-none-any.whl $(KERNELS_FOR)
	sh tools/try_dist.sh dist

release:
	@test -z "$$(git status --porcelain)" || { echo "there are changes that are not committed: a release is made of a commit" >&2; exit 1; }
	@CI=true TIGHTROPE_WHOLE=1 $(MAKE) --no-print-directory test
	@$(MAKE) --no-print-directory test-lowest
	@$(MAKE) --no-print-directory docs
	@$(MAKE) --no-print-directory dist
	@echo "checked: $$(git rev-parse --short HEAD), $$($(BIN)/tightrope --version); dist/ and build/site/ are ready, RELEASING.md says what follows"

docs: $(STAMP)
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs build/site
	@echo "the site is build/site/index.html"

pages: $(STAMP)
	$(BIN)/python docs/_tools/run_pages.py --write docs/start/*.md docs/tutorials/*.md docs/how-to/*.md docs/gallery/*.md

schemas: $(STAMP)
	$(BIN)/python tools/schemas.py docs/schemas
	$(BIN)/python tools/parser_tables.py

bench: $(STAMP)
	@mkdir -p bench-results
	@missed=; for script in benchmarks/*.py; do \
	  echo "== $$script"; $(BIN)/python "$$script" || missed="$$missed $$script"; done; \
	  test -z "$$missed" || { echo "goals missed in:$$missed" >&2; exit 1; }

clean:
	rm -rf $(VENV) build proved/build dist bench-results demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src campaigns tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
