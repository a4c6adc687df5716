# Everything a checkout can do. Each goal first sets up what it needs; `make help` lists them.

# The first Python that is new enough.
PYTHON ?= $(shell for each in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$each -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$each && exit; done; echo python3)
# Processes that share the tests.
JOBS ?= 2
# The tests of a file stay in one process: what they share is made once.
SHARED = -n $(JOBS) --dist loadfile
# Random programs in each campaign of `make soak`. That of rtl against cycle resumes: run it again,
# or with a larger number, and it goes on where it stopped.
SOAK_PROGRAMS ?= 100000
# Random one-token faults that its search for missing tests makes, and which ones.
SOAK_FAULTS ?= 40
SOAK_SEED ?= 0
# Processors of both families that its operators' machine code runs on (tests/emulated.py).
EMULATED = x86-64-v1 x86-64-v2 x86-64-avx x86-64-v3 x86-64-v4 aarch64 aarch64-dot
# Handed on to the demo, pytest or each benchmark, as in `make bench FLAGS=--json`.
FLAGS ?=

SET_UP = @$(PYTHON) tools/set_up.py
BIN := .venv/bin
# Through this link a source is microtron.… to mypy, whatever the checkout's folder is called;
# the scripts are modules of their own folders.
LINK := .venv/src/microtron
TYPED = $(addprefix $(LINK)/,$(wildcard base isa sim compiler runtime quantization report boards explore testing cli __main__.py)) \
	$(wildcard examples/*.py examples/*/*.py benchmarks/*.py benchmarks/*/*.py tools/*.py)
# What a developer runs every few minutes: no hardware is built, nothing large is compiled, and the
# longest random searches are left out.
QUICK = tests/test_project.py tests/base tests/isa tests/compiler/expression tests/compiler/nest \
	tests/compiler/schedule tests/compiler/accelerator tests/compiler/graph/test_operations.py \
	tests/compiler/network/test_memory_plan.py tests/compiler/operators/test_description.py \
	tests/sim/test_limit.py \
	$(foreach slow,schedule/test_schedule,--deselect tests/compiler/$(slow).py) \
	$(foreach slow,base/test_checked_values isa/test_config_fuzz isa/assembly/test_assembler \
	isa/assembly/test_assembler_errors isa/image/test_image_refusals \
	isa/verification/test_verifier_limits,--deselect tests/$(slow).py)
BENCHMARKS = $(filter-out $(addprefix %/,common.py convolution.py layer_sweep.py schedule_search.py worker_rates.py),$(sort $(wildcard benchmarks/*.py)))
# Small enough for the smallest square array.
RTL_LAYER = conv2d --height 8 --width 8 --channels-in 8 --channels-out 8 --pad 1

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
export SOAK_PROGRAMS
.NOTPARALLEL:
.PHONY: help demo rtl test quick lint bench soak boards docs clean

help:   ## say what there is
	@sed -n 's/^\([a-z]*\):.*## /make \1\t/p' Makefile | expand -t 12

demo:   ## quantize a trained network, run it exactly on digits it has not seen, and show how
	$(SET_UP) demo
	@$(BIN)/python examples/digits_demo.py --report .venv/digits_report.html $(FLAGS)

rtl:    ## run a layer on the accelerator's Verilog under Verilator, and compare every cycle
	$(SET_UP) rtl
	@$(BIN)/microtron kernel $(RTL_LAYER) --config tiny --show cycles -o .venv/layer.mt
	@$(BIN)/microtron compare .venv/layer.mt

test: lint      ## run the linters and the tests
	@$(BIN)/python -m pytest $(SHARED) $(FLAGS)

quick:  ## run the tests that take seconds: do this every few minutes
	$(SET_UP) test
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/python -m pytest $(SHARED) $(FLAGS) $(QUICK)

lint:   ## run ruff and mypy
	$(SET_UP) test
	@$(BIN)/ruff check --quiet --output-format concise .
	@$(BIN)/mypy --explicit-package-bases --no-error-summary $(TYPED) | sed 's|^$(LINK)/||'

bench:  ## run every benchmark; one JSON object each with FLAGS=--json
	$(SET_UP) test
	@for script in $(BENCHMARKS); do $(BIN)/python $$script $(FLAGS); done

soak:   ## run the long random campaigns; SOAK_PROGRAMS says how long
	$(SET_UP) test
	@$(BIN)/python tools/soak.py --programs $(SOAK_PROGRAMS) --processes $(JOBS)
	@$(BIN)/python -m pytest -n $(JOBS) -m soak $(FLAGS)
	@$(BIN)/python -m pytest $(SHARED) --hypothesis-profile=soak $(FLAGS) \
		tests/isa tests/sim tests/compiler
	@MICROTRON_COMPILED_OPERATORS=1 $(BIN)/python -m pytest $(SHARED) $(FLAGS) \
		--hypothesis-profile=machine tests/compiler/cpu/operators
	@for each in $(EMULATED); do echo "machine code for $$each"; \
		MICROTRON_COMPILED_OPERATORS=$$each $(BIN)/python -m pytest $(SHARED) $(FLAGS) \
		tests/compiler/cpu tests/runtime/reference; done
	@$(BIN)/python tools/mutations.py --count $(SOAK_FAULTS) --seed $(SOAK_SEED)

boards: ## build bitstreams for five boards (an hour or more), and write their table in docs/boards.md
	$(SET_UP) boards
	@$(BIN)/python tools/build_boards.py $(FLAGS)

docs:   ## write what is generated, docs/isa.md and the diagrams, and the site in build/docs
	$(SET_UP) docs
	@trap 'rm -f docs/.isa.md.new' EXIT; \
	$(BIN)/microtron isa --manual > docs/.isa.md.new && mv docs/.isa.md.new docs/isa.md
	@$(BIN)/python tools/cycle_diagrams.py
	@$(BIN)/python tools/diagrams.py
	@$(BIN)/python tools/build_docs.py

clean:  ## remove everything that make and Python created, .venv too
	@rm -rf .venv build microtron.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -not -path './.git/*' -prune -exec rm -rf {} +
