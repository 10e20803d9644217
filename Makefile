# Every target sets up what it needs in .venv (and .venv-newest), with nothing but python3 and make.

PYTHON ?= python3
WORKERS ?= 2
EXTRAS := bench demo dev docs test

# The newest other Python on this machine, found when first asked for.
newest = $(eval newest := $(shell \
	here=$$($(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])'); \
	for version in 3.13 3.12; do \
		[ $$version != $$here ] || continue; \
		for python in python$$version $$HOME/.pyenv/versions/$$version.*/bin/python; do \
			$$python -c 'import ensurepip, venv' 2>/dev/null && echo $$python && exit; \
		done; \
	done))$(newest)

# Bytecode is kept in one folder, also where the environment says to write none: tests start many processes.
export PYTHONDONTWRITEBYTECODE :=
export PYTHONPYCACHEPREFIX ?= $(CURDIR)/out/pycache

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo gpt distributed test compat check laws mutate bench surface docs clean lint mypy types imports test-newest test-on-newest

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: .venv/extra-demo  ## Train a classifier on handwritten digits, gradients accumulated in place
	.venv/bin/python examples/digits.py

gpt: .venv/extra-demo  ## Train a small GPT on the documentation; its step drawn, counted, optimized and debugged
	.venv/bin/python examples/gpt.py

distributed: .venv/extra-demo  ## Train on 8 CPU devices of one process, then on 4 processes of 2 devices
	JAX_NUM_CPU_DEVICES=8 .venv/bin/python examples/distributed.py
	.venv/bin/python -m effax.launch -n 4 --devices 2 examples/distributed.py

test: lint types imports .venv/with-jax compat  ## Everything that CI runs: linters, types, all tests; on the newest Python without slow unit tests
	.venv/bin/pytest -q -n $(WORKERS) --ignore=tests/compat
	@$(if $(newest),$(MAKE) --no-print-directory test-on-newest,\
		echo "Skipped: the tests on a newer Python, since neither python3.13 nor python3.12 was found.")

compat: .venv/extra-dev .venv-compat/made  ## Libraries and scripts that say `import jax`, on effax
	.venv/bin/pytest -q -n $(WORKERS) tests/compat

check: lint mypy imports  ## The fast loop: linters, mypy and the unit tests that are fast and need no JAX
	.venv/bin/pytest -q -n $(WORKERS) -m "not slow and not jax" tests/unit tests/golden

laws: .venv/extra-dev  ## The laws, on many more random programs
	.venv/bin/pytest -q -n $(WORKERS) --hypothesis-profile=laws tests/laws

mutate: .venv/extra-dev  ## Faults in every rule, and how many of them the laws catch
	.venv/bin/python -m tests.mutation.run

bench: bench_venv = .venv$(if $(newest),-newest)
bench:  ## Time effax against JAX, on the newest Python of this machine
	@$(MAKE) --no-print-directory $(bench_venv)/extra-bench
	$(bench_venv)/bin/python benchmarks/run.py

surface: .venv/extra-dev  ## Write the list of all that is public, tests/golden/surface.md
	.venv/bin/python -m tests.surface

missing-names: bench_venv = .venv-newest
missing-names:  ## Write the list of all names of JAX that effax lacks, where jax is installed
	$(bench_venv)/bin/python -m tests.missing_names

docs: .venv/extra-docs  ## Build the documentation as a site, in out/docs
	NO_MKDOCS_2_WARNING=1 .venv/bin/mkdocs build --quiet --clean
	@echo "The site is out/docs/index.html"

clean:  ## Remove environments, caches and output
	rm -rf .venv .venv-newest .venv-compat .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache out
	find . -name __pycache__ -prune -exec rm -rf {} +

lint: .venv/extra-dev  ## Style and format
	.venv/bin/ruff check
	.venv/bin/ruff format --check

mypy: .venv/extra-dev  ## mypy on everything
	.venv/bin/mypy

types: mypy  ## mypy on everything, pyright on effax
	.venv/bin/pyright --pythonpath .venv/bin/python

imports: .venv/extra-dev  ## The direction of imports
	.venv/bin/lint-imports

# Types, and the strength of laws against planted faults, are those of the first Python; slow unit
# tests, of values that no Python and no jaxlib changes, run there only.
test-on-newest: .venv-newest/extra-test .venv-newest/with-jax
	.venv-newest/bin/pytest -q -n $(WORKERS) -m "not slow" tests/unit tests/golden
	.venv-newest/bin/pytest -q -n $(WORKERS) --hypothesis-profile=brief tests/laws tests/differential tests/sweep tests/random_functions

# Environments. A stamp says that an extra is installed as pyproject.toml has it now.
define make_venv
@echo "Setting up $(@D) with $(1)"
@$(1) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "effax needs Python 3.11 or newer: make PYTHON=...")'
@$(1) -m venv --clear $(@D)
@$(@D)/bin/pip install -q "hatchling>=1.27" editables
@touch $@
endef

install = $(@D)/bin/pip install -q --no-build-isolation -e ".[$(1)]" && touch $@

.venv/made:
	$(call make_venv,$(PYTHON))

.venv-newest/made:
	$(call make_venv,$(newest))

$(EXTRAS:%=.venv/extra-%): .venv/extra-%: pyproject.toml .venv/made
	$(call install,$*)

$(EXTRAS:%=.venv-newest/extra-%): .venv-newest/extra-%: pyproject.toml .venv-newest/made
	$(call install,$*)

.venv/with-jax .venv-newest/with-jax: %/with-jax: pyproject.toml %/made
	@$(call install,bench) || echo "JAX could not be installed: the comparisons with it are skipped."

# The libraries ask for the newest Python found, and are installed without JAX, for which each of them asks.
.venv-compat/made: tests/compat/requirements.txt
	@echo "Setting up $(@D) with $(or $(newest),$(PYTHON))"
	@rm -rf $(@D)
	@$(or $(newest),$(PYTHON)) -m venv $(@D)
	@$(@D)/bin/pip install -q --no-deps -r $< && touch $@ || { \
		rm -rf $(@D); echo "The libraries could not be installed: their programs are skipped."; }
