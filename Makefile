# One door for people and CI. `make demo` and `make test` need only Python >= 3.11 and, as root, apt.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VENV := .venv
PYTHON := $(VENV)/bin/python
HOST_PYTHON ?= $(shell for p in python3.13 python3.12 python3.11 python3; do \
	command -v $$p >/dev/null 2>&1 && $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)

DEMO_PACKAGES := redis-server prometheus prometheus-alertmanager fonts-noto-cjk \
	libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0
TEST_PACKAGES := $(DEMO_PACKAGES) chromium poppler-utils gcc libc6-dev git
LAB_PACKAGES := gcc libc6-dev nftables iproute2

ARGS ?=
CASES ?=
BENCH ?=
SCORER ?= $(wildcard $(dir $(patsubst %/,%,$(BENCH)))score.py)
OUT ?= predictions.json

.PHONY: help setup demo test lint fix gpu bench bench-rca golden lab lab-packages chaos fuzz cases lock wheel clean demo-packages test-packages

help:  ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## / — /'

$(VENV)/.installed: requirements.lock pyproject.toml
	@if [ -z "$(HOST_PYTHON)" ]; then \
		echo "make: Python 3.11 or newer is missing: install python3 and python3-venv" >&2; exit 1; fi
	@$(HOST_PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
		if [ "$$(id -u)" = 0 ]; then apt-get update -qq && \
			DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null; \
		else echo "make: venv is missing: run: sudo apt-get install -y python3-venv" >&2; exit 1; fi; }
	@[ -x $(PYTHON) ] || $(HOST_PYTHON) -m venv $(VENV)
	@echo "installing the locked dependencies into $(VENV)"
	@$(PYTHON) -m pip install -q --disable-pip-version-check --require-hashes -r requirements.lock
	@$(PYTHON) -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(PYTHON) -m compileall -q $(VENV)/lib bot commands || true
	@touch $@

setup: $(VENV)/.installed  ## create .venv with the locked dependencies

# Installs what is missing as root; otherwise says the one line to run. RUNLEVEL=1 keeps Debian from starting services.
define need_packages
	@missing=""; for p in $(1); do \
		dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || missing="$$missing $$p"; done; \
	if [ -n "$$missing" ]; then \
		if [ "$$(id -u)" = 0 ]; then \
			echo "installing:$$missing"; apt-get update -qq && \
			RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive \
				apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
		else \
			echo "make: missing Debian packages; run: sudo apt-get install -y --no-install-recommends$$missing" >&2; \
			exit 1; fi; fi
endef

demo-packages:
	$(call need_packages,$(DEMO_PACKAGES))

test-packages:
	$(call need_packages,$(TEST_PACKAGES))

demo: demo-packages setup  ## a live incident to work through; ARGS=--headless plays it to its end
	@$(VENV)/bin/rca-bot demo $(ARGS)

# Four workers on two cores: most tests wait, for a pace of one message a second or for a deadline.
test: test-packages setup  ## the whole test suite
	@$(PYTHON) -m pytest -n 4 --dist loadgroup -m "not alone and not chaos" $(ARGS)
	@$(PYTHON) -m pytest -m "alone and not chaos" $(ARGS)$(if $(ARGS), || [ $$? = 5 ])

lint: setup  ## style, types, import directions, spelling
	@$(VENV)/bin/ruff check bot commands tests
	@$(VENV)/bin/ruff format --check bot commands tests
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports
	@$(VENV)/bin/codespell bot commands templates tests deploy README.md CONTRIBUTING.md DECISIONS.md CHANGELOG.md
	@$(VENV)/bin/rca-bot sop lint

fix: setup  ## what can be put right by itself
	@$(VENV)/bin/ruff check --fix-only bot commands tests
	@$(VENV)/bin/ruff format bot commands tests
	@$(PYTHON) -m tests.readme_tables

lab-packages:
	$(call need_packages,$(LAB_PACKAGES))

lab: lab-packages setup  ## real faults on this machine, found by a real agent; needs root
	@$(PYTHON) -m pytest tests/lab $(ARGS)

gpu: setup  ## the whole catalogue of probes on this machine's real GPU, in five minutes
	@$(PYTHON) -m pytest -s tests/gpu $(ARGS)

bench: test-packages setup  ## figures, as ratios against a peer in the same run
	@$(PYTHON) -m tests.bench $(ARGS)

cases: setup  ## recorded cases: make cases CASES=DIR [OUT=predictions.json]
	@test -n "$(CASES)" || { echo "make cases: name the folder: CASES=DIR" >&2; exit 2; }
	@$(PYTHON) $(dir $(patsubst %/,%,$(CASES)))harness.py run $(CASES) --cmd "$(abspath $(VENV))/bin/rca-bot diagnose" --out $(OUT) --jobs 2
	@$(PYTHON) $(dir $(patsubst %/,%,$(CASES)))harness.py score $(OUT) $(CASES)/truth.json

golden: test-packages setup  ## play the recorded incident anew and renew its report; look before: make golden OUT=FOLDER
	@$(PYTHON) -m tests.report.golden $(filter-out predictions.json,$(OUT))

bench-rca: setup  ## public root-cause benchmarks: make bench-rca BENCH=DIR OUT=DIR [SCORER=FILE]
	@test -n "$(BENCH)" && test -n "$(filter-out predictions.json,$(OUT))" || { \
		echo "make bench-rca: name both folders: BENCH=DIR OUT=DIR" >&2; exit 2; }
	@$(PYTHON) -m tests.bench.rca_run $(BENCH) $(OUT) $(SCORER)

chaos: test-packages setup  ## longer proofs: kill -9 at every named point, every variant of the demo
	@$(PYTHON) -m pytest -m "" tests/scenarios/test_crash.py tests/demo/test_playthrough.py $(ARGS)

fuzz: test-packages setup  ## thousands of generated alert bodies, commands and thread histories
	@HYPOTHESIS_PROFILE=long $(PYTHON) -m pytest -o timeout=0 tests/slack/test_fuzz.py tests/slack/test_home.py \
		tests/slack/test_text.py tests/commands tests/intake tests/web tests/contracts/test_every_intake.py tests/exporters/test_every_text.py \
		tests/report/test_markdown.py $(ARGS)

lock:  ## resolve the dependencies anew
	@$(PYTHON) -m pip install -q uv
	@$(VENV)/bin/uv pip compile pyproject.toml --all-extras --group lint --group test --generate-hashes \
		--no-emit-index-url --no-emit-find-links --python-version 3.11 --custom-compile-command "make lock" \
		-q -o requirements.lock

wheel: setup  ## build the wheel into dist/
	@$(PYTHON) -m build --wheel --no-isolation -o dist . >/dev/null && ls dist/*.whl

clean:
	@rm -rf dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis
