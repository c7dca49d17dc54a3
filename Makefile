# One command each: `make demo` and `make test` create the environment when it is missing or old.
# Works with GNU make 3.81 (macOS) or newer; uses uv where it is installed, venv and pip where not.

PYTHON ?= python3
VENV ?= .venv
PYTEST_ARGS ?=
BENCH_ARGS ?=
SOAK_ARGS ?=
CORE_COVERAGE ?= 100

BIN := $(VENV)/$(if $(filter Windows_NT,$(OS)),Scripts,bin)
UV := $(shell command -v uv 2>/dev/null)
ifdef UV
CREATE = uv venv --quiet --seed --allow-existing --python $(PYTHON) $(VENV)
INSTALL = uv pip install --quiet --python $(BIN)/python --constraint constraints.txt
else
CREATE = $(PYTHON) -m venv $(VENV)
INSTALL = $(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt
endif

# The group is read here, since the pip that comes with Python 3.11 does not know --group.
DEV_GROUP = import tomllib; \
	print(*tomllib.load(open("pyproject.toml", "rb"))["dependency-groups"]["dev"], sep="\n")

CREATED := $(VENV)/created.stamp
PACKAGE := $(VENV)/package.stamp
DEV := $(VENV)/dev.stamp
BENCH := $(VENV)/bench.stamp

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help demo test check ruff mypy pyright imports pytest bench soak docs constraints clean

help: ## Show these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

demo: $(PACKAGE) ## Run a job, kill it, resume it and explain its verdict
	@$(BIN)/tacho demo

test: check pytest ## Run every check and every test, as CI does

check: ruff mypy pyright imports ## Run the checks that take seconds: style, types, layers

ruff: $(DEV)
	@echo "== ruff: style and format"
	@$(BIN)/ruff check --quiet --output-format concise
	@$(BIN)/ruff format --check --quiet || { echo "Format the files with: $(BIN)/ruff format" >&2; exit 1; }

mypy: $(DEV)
	@echo "== mypy: types, strict"
	@$(BIN)/mypy --no-error-summary
	@$(BIN)/mypy --no-error-summary tests tools

pyright: $(DEV)
	@echo "== pyright: types, second opinion"
	@$(BIN)/python tools/check_pyright.py

imports: $(DEV)
	@echo "== import-linter: layers"
	@report=$$($(BIN)/lint-imports --no-logo --no-cache) || { echo "$$report" >&2; exit 1; }

pytest: $(DEV) ## Run the tests alone; choose some with PYTEST_ARGS="-k gate"
	@echo "== pytest: tests, with branch coverage"
	@$(BIN)/pytest --numprocesses auto --maxprocesses 4 --cov $(PYTEST_ARGS)
	@echo "== coverage: domain and projections"
	@$(BIN)/coverage report --include 'domain/*,projections/*' --fail-under $(CORE_COVERAGE)

bench: $(BENCH) ## Measure, and compare with other tools
	@$(BIN)/python benchmarks $(BENCH_ARGS)

soak: $(PACKAGE) ## Kill queue workers for minutes and look for lost jobs
	@$(BIN)/python benchmarks/soak_queues.py $(SOAK_ARGS)

docs: $(DEV) ## Write the generated parts of docs/ anew
	@$(BIN)/python tools/generate_docs.py

constraints: ## Resolve every dependency anew and write constraints.txt
	@rm -rf $(VENV)-constraints
	@$(PYTHON) -m venv $(VENV)-constraints
	@$(PYTHON) -c '$(DEV_GROUP)' > $(VENV)-constraints/dev.txt
	@$(VENV)-constraints/bin/python -m pip install -qq '.[crypto,bench]' -r $(VENV)-constraints/dev.txt
	@$(VENV)-constraints/bin/python -m pip freeze --all --exclude pip --exclude tachograph > constraints.txt
	@rm -rf $(VENV)-constraints

clean: ## Remove the environment and everything that these targets made
	@if [ -e $(CREATED) ]; then rm -rf $(VENV); fi
	@rm -rf build dist *.egg-info .coverage .coverage.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find cli domain infra projections tachograph tests tools -name __pycache__ -prune -exec rm -rf {} +

$(CREATED):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "Tachograph needs Python 3.11 or newer, and '$(PYTHON)' is not that." >&2; \
	  echo "Install one, or name the one to use: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }
	@echo "== environment: $(VENV), with $(if $(UV),uv,venv and pip)"
	@$(CREATE)
	@touch $@

$(PACKAGE): $(CREATED) pyproject.toml constraints.txt
	@echo "== install: tachograph"
	@$(INSTALL) 'setuptools>=77'
	@$(INSTALL) --no-build-isolation --editable .
	@touch $@

$(DEV): $(PACKAGE)
	@echo "== install: development tools"
	@$(BIN)/python -c '$(DEV_GROUP)' > $(VENV)/dev.txt
	@$(INSTALL) --requirement $(VENV)/dev.txt
	@touch $@

$(BENCH): $(PACKAGE)
	@echo "== install: what the benchmarks compare with"
	@$(INSTALL) --no-build-isolation --editable '.[bench]'
	@touch $@
