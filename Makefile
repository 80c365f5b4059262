# Two commands do everything: `make reports` and `make test`. Each sets itself up.
SHELL := /bin/sh
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
LOCK := requirements.lock
FULL := .venv-full
FULL_READY := $(FULL)/.ready
FULL_LOCK := requirements-full.lock
# Nothing below may ask a question or read the caller's other environment.
unexport VIRTUAL_ENV PYTHONPATH PYTHONHOME

.PHONY: help reports test test-full lint format lab lock bench clean
.DEFAULT_GOAL := help

help:  ## list these commands
	@sed -n 's/^\([a-z]*\):.*##/make \1 :/p' Makefile

reports: $(READY)  ## run every notebook whose inputs changed and write reports/index.html
	$(BIN)/faultbook report

test: $(READY)  ## run all tests (browser tests need Debian's chromium and are skipped without it)
	$(BIN)/python -m pytest

test-full: $(FULL_READY)  ## tests against other packages, engines and log readers, in an environment of their own (needs g++)
	$(FULL)/bin/python -m pytest tests/oracles tests/engines tests/recovery/test_estimators.py \
		tests/harness/formats/test_inspect_log.py tests/harness/test_evidence.py

lint: $(READY)  ## style, types, and notebooks committed without outputs
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/nbstripout --verify --keep-id --extra-keys "metadata.papermill cell.metadata.papermill metadata.widgets" \
		notebooks/*.ipynb

format: $(READY)  ## apply the style and strip notebook outputs
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/nbstripout --keep-id --extra-keys "metadata.papermill cell.metadata.papermill metadata.widgets" notebooks/*.ipynb

lab: $(READY)  ## open JupyterLab on 127.0.0.1 with a token
	$(BIN)/faultbook lab

# Where `make test-full` has made its environment, the engines in it are measured too.
bench: $(READY)  ## measure our statistics against peers, and what keeping records of a run costs
	@python=$(BIN)/python; [ ! -x $(FULL)/bin/python ] || python=$(FULL)/bin/python; $$python benchmarks/bench.py

# The readers of Inspect want an older python-dateutil than the newest: it alone may differ between the two locks.
lock: $(BIN)/uv  ## resolve requirements.lock anew for Python 3.11 to 3.14
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --fork-strategy fewest \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --upgrade --quiet --output-file $(LOCK)
	sed -n 's/^\([A-Za-z0-9._-]*==[^\\]*[^ \\]\) *\\*$$/\1/p' $(LOCK) | grep -v '^python-dateutil==' > $(VENV)/constraints.txt
	$(BIN)/uv pip compile pyproject.toml --group dev --group oracles --all-extras --constraint $(VENV)/constraints.txt \
		--universal --python-version 3.11 --fork-strategy fewest --generate-hashes --no-emit-index-url --no-header \
		--no-annotate --quiet --output-file $(FULL_LOCK)

clean:  ## remove the environment and everything generated
	rm -rf $(VENV) $(FULL) .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find reports -mindepth 1 ! -name README.md -delete

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "faultbook needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ..." >&2; exit 2; }
	$(PYTHON) -m venv $(VENV)

# The lock pins uv too, so the environment is built by the version that it names.
$(BIN)/uv: $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(sed -n 's/^\(uv==[0-9.]*\).*/\1/p' $(LOCK))"
	@touch $@

$(FULL_READY): $(FULL_LOCK) pyproject.toml $(READY)
	$(BIN)/uv venv --quiet --allow-existing --python $(BIN)/python $(FULL)
	$(BIN)/uv pip sync --quiet --python $(FULL)/bin/python --require-hashes $(FULL_LOCK)
	$(BIN)/uv pip install --quiet --python $(FULL)/bin/python --no-deps --no-build-isolation --editable .
	@touch $@

$(READY): $(LOCK) pyproject.toml | $(BIN)/uv
	$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes $(LOCK)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation --editable .
	@touch $@
