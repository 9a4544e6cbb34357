# Every target sets itself up: it needs python3 (3.10 or newer, with venv) and nothing else. A C compiler makes
# stepscope fast; without one (try CC=false) the same sources run interpreted.

PYTHON ?= python3
SAMPLES := $(filter-out %.py %.md,$(wildcard src/stepscope/samples/*))
PROJECT := pyproject.toml setup.py requirements.txt $(addprefix packaging/capture/,pyproject.toml setup.py files.txt)
# A C compiler without Python's headers compiles none of the hot loops.
HEADERS := $(shell $(PYTHON) -c 'import sysconfig; print(sysconfig.get_path("include"))' 2>/dev/null)
COMPILER := $(shell printf '\043include <Python.h>\nint main(void) { return 0; }\n' | \
	$(CC) -x c -I "$(HEADERS)" -o /dev/null - >/dev/null 2>&1 && echo works)

ifeq ($(COMPILER),works)
# Editable: the extensions are built into src/, and only changed native sources ask for another install.
VENV := .venv
SOURCES := $(shell find src/stepscope/native -name '*.py' -o -name '*.pxd')
EDITABLE := --editable
else
# A copy of the sources: in src/ itself, extensions of an earlier build would be imported.
VENV := .venv-interpreted
SOURCES := $(shell find src -type f -not -name '*.so' -not -path '*/__pycache__/*' -not -path '*.egg-info/*')
EDITABLE :=
endif

PY := $(VENV)/bin/python
STEPSCOPE := $(VENV)/bin/stepscope
INSTALL := $(PY) -m pip install -qq --disable-pip-version-check
# The recorder and the rest, from their folders in one call: no index is asked for ours.
OURS := $(foreach place,./packaging/capture .,$(EDITABLE) $(place))
# Of tools and frameworks most modules are never imported: each is compiled when it is.
PIP := -m pip install -qq --disable-pip-version-check --no-compile
# Some machines keep no bytecode: hundreds of processes would then compile the same modules again and again.
export PYTHONDONTWRITEBYTECODE :=
# What pyproject.toml lists as dev, on its own: asking pip for .[dev] would compile everything again.
TOOLS_OF_DEV := from importlib.metadata import requires; \
	print(*(line.split(';')[0] for line in requires('stepscope') if 'dev' in line.partition('extra ==')[2]))
# Builds what is released, with the tools of pyproject.toml and nothing else.
BUILDER := .venv-build
# Real frameworks, on the CPU, for the tests of capture: too large to have in every environment.
FRAMEWORKS := .venv-frameworks
FRAMEWORK_PACKAGES := torch==2.13.0 'tensorflow==2.21.*' jax keras lightning transformers accelerate xprof
NEEDED_TO_RUN := from importlib.metadata import requires; \
	print(*(repr(line.split(';')[0]) for line in requires('stepscope') if 'extra ==' not in line and not line.startswith('stepscope')))
# The site is made by programs of its own, which nothing else here needs.
DOCS := .venv-docs
TOOLS_OF_DOCS := from importlib.metadata import requires; \
	print(*(line.split(';')[0] for line in requires('stepscope') if 'docs' in line.partition('extra ==')[2]))
DEVICE_TIME := SELECT op.name AS op, COUNT(*) AS kernels, SUM(work.dur_ns) AS device_ns FROM kernels \
	JOIN events AS work ON work.id = kernels.event JOIN events AS op ON op.id = kernels.op \
	GROUP BY op.name ORDER BY device_ns DESC LIMIT 5

# The page is checked by TypeScript and Node, and tried in a real browser, where these are or can be had.
NODE := $(shell command -v node 2>/dev/null)
NPM := $(shell command -v npm 2>/dev/null)
CHROMIUM := $(or $(STEPSCOPE_CHROMIUM),$(shell command -v chromium || command -v chromium-browser || command -v google-chrome))
BROWSER_TESTS := tests/browser tests/tensorboard/test_browser.py tests/reports/test_browser.py
MAY_INSTALL := $(shell test "$$(id -u)" = 0 && command -v apt-get 2>/dev/null)

# Most tables of tests are tiny: there a second thread of Polars costs more than it helps, and each core has its own worker.
ONE_THREAD := POLARS_MAX_THREADS=1
# Two at least, since many tests wait for other programs; not more than eight, since each needs up to a gigabyte.
CORES := $(shell getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2)
WORKERS := $(shell test $(CORES) -le 2 && echo 2 || { test $(CORES) -le 8 && echo $(CORES) || echo 8; })

# Browsers, clusters and frameworks are other people's programs, and now and then one of them stumbles: what failed is
# tried once more, by itself, and said to be unsteady. What fails twice has failed, and so has a part in which a process of tests dies.
# The outcomes of each part are written down: `make test` prints at its end what was unsteady and what was skipped.
OUTCOMES := .pytest_cache/outcomes
RUN = STEPSCOPE_OUTCOMES=$(OUTCOMES)/$@.jsonl $(1) -p tests.outcomes -o cache_dir=.pytest_cache/$@
TRIED = $(call RUN,$(1)) || { test $$? = 1 && echo "UNSTEADY, unless it fails again:" && \
	$(call RUN,$(1)) --last-failed --last-failed-no-failures none -rA; }
# $(1): what is skipped, $(2): why. Tests of Node and TypeScript are none of pytest.
SKIP = echo "SKIPPED: $(1). $(2)." >&2; mkdir -p $(OUTCOMES) && \
	echo '{"id": "$(1)", "outcome": "skipped", "reason": "$(2)"}' >$(OUTCOMES)/$(3).jsonl

ASAN = LD_PRELOAD=$$($(CC) -print-file-name=libasan.so) ASAN_OPTIONS=detect_leaks=0 PYTHONMALLOC=malloc
FUZZ_SECONDS ?= 600
# Through the whole pipeline. Which have passed is written down in .fuzz: the next soak goes on with others.
FUZZ_CASES ?= 3000

# One that breaks a promise does not keep the others from being measured.
BENCHES := overhead load commands viewer diagnosis assistant trying diff ranks

.DEFAULT_GOAL := help
.PHONY: help demo test all-parts unit lint pytest web web-tools capture native docs docs-test versions bench $(addprefix bench-,$(BENCHES)) soak fuzz-asan wheels release-check clean

help: ## what can be made here
	@sed -n 's/^\([a-z-]*\):.*## /\1:/p' Makefile | expand -t 4 | awk -F: '{ printf "  make %-13s %s\n", $$1, $$2 }'

demo: $(VENV)/.run ## record a small training loop, explain it, and show it with a profile of a GPU that ships with stepscope
	@rm -rf demo-out/logs && mkdir -p demo-out
	@test -n "$(SAMPLES)" || { echo "src/stepscope/samples is empty: nothing to show." >&2; exit 1; }
	@for sample in $(SAMPLES); do echo "$$ stepscope info $$sample"; $(STEPSCOPE) info $$sample || exit; echo; done
	@echo '$$ stepscope query $(firstword $(SAMPLES)) "$(DEVICE_TIME)"'
	@$(STEPSCOPE) query $(firstword $(SAMPLES)) "$(DEVICE_TIME)"
	@echo && echo '$$ stepscope report $(firstword $(SAMPLES))'
	@$(STEPSCOPE) report $(firstword $(SAMPLES))
	@echo && echo '$$ python examples/plain_training.py demo-out/logs'
	@$(PY) examples/plain_training.py demo-out/logs
	@echo && echo '$$ stepscope report demo-out/logs'
	@$(STEPSCOPE) report demo-out/logs
	@echo && echo '$$ stepscope report demo-out/logs -o demo-out/report.html --force'
	@$(STEPSCOPE) report demo-out/logs -o demo-out/report.html --force
	@# A terminal gets the page, until Ctrl+C; whatever else reads this gets the command.
	@echo && echo '$$ $(STEPSCOPE) serve demo-out/logs src/stepscope/samples'
	@if test -t 1; then exec $(STEPSCOPE) serve demo-out/logs src/stepscope/samples; \
	  else echo "shows both in a browser, with a trace viewer."; fi

test: $(VENV)/.run ## everything CI needs (lint, types and all tests)
	@rm -rf $(OUTCOMES)
	@$(MAKE) --no-print-directory all-parts; status=$$?; $(PY) -m tests.outcomes $(OUTCOMES); exit $$status

# All parts side by side: downloads, browsers and many tests wait more than they compute, and meanwhile no core is idle.
# The largest part shows its progress, the others print when they have ended.
# The page has a make of its own, after the tools: only then it finds a Chromium that was just installed.
all-parts:
	@$(MAKE) --no-print-directory --output-sync=target capture & recording=$$!; status=0; \
	$(MAKE) --no-print-directory $(VENV)/.dev || { kill $$recording 2>/dev/null; wait $$recording; exit 1; }; \
	{ $(MAKE) --no-print-directory --output-sync=target -j 2 lint docs web-tools; linted=$$?; \
	  $(MAKE) --no-print-directory --output-sync=target web && exit $$linted; } & page=$$!; \
	$(MAKE) --no-print-directory pytest || status=$$?; \
	wait $$page || status=$$?; wait $$recording || status=$$?; exit $$status

unit: $(VENV)/.dev ## the quick tests, without other programs, browsers and frameworks (at most 3 minutes on two cores)
	$(ONE_THREAD) $(PY) -m pytest -n $(WORKERS) --dist worksteal -p tests.unit

lint: $(VENV)/.dev ## ruff and mypy
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m mypy

pytest: $(VENV)/.dev
	$(call TRIED,$(ONE_THREAD) STEPSCOPE_EXPECT=$(if $(EDITABLE),compiled,interpreted) $(PY) -m pytest -n $(WORKERS) --dist worksteal --max-worker-restart 0 --ignore tests/capture $(addprefix --ignore ,$(BROWSER_TESTS)))

web: $(VENV)/.dev web-tools ## only the page: its types, its modules, and every page of it in a real browser
	@if test -x node_modules/.bin/tsc; then node_modules/.bin/tsc --project tsconfig.json; \
	  else $(call SKIP,the types of the page,npm of Node 20 or newer not found,types); fi
	@if test -n "$(NODE)"; then $(NODE) --test --test-reporter=dot tests/web/*.test.js tests/web/*/*.test.js; \
	  else $(call SKIP,the modules of the page,Node 20 or newer not found,modules); fi
	@test -n "$(CHROMIUM)" || echo "SKIPPED: the tests in a browser. Chromium not found (see STEPSCOPE_CHROMIUM)." >&2
	$(call TRIED,$(ONE_THREAD) STEPSCOPE_CHROMIUM=$(CHROMIUM) $(PY) -m pytest $(wildcard $(BROWSER_TESTS)))

web-tools: $(if $(NPM),node_modules/.made)
ifeq ($(CHROMIUM),)
ifneq ($(MAY_INSTALL),)
	@echo "Installing Chromium" >&2
	@{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends chromium; } \
	  >/dev/null 2>&1 || echo "Chromium could not be installed." >&2
endif
endif

capture: $(FRAMEWORKS)/.dev ## only the tests of recording, with PyTorch, TensorFlow, JAX and others
	$(call TRIED,$(ONE_THREAD) PYTHONPATH=src $(FRAMEWORKS)/bin/python -m pytest -n 2 --dist loadfile --max-worker-restart 0 \
	  tests/ranks/test_processes.py tests/ranks/hangs/test_gloo.py tests/capture/test_run.py tests/capture/test_docs.py tests/capture \
	  tests/benchmarks/test_trial_record.py)

native: $(VENV)/.hot ## only the tests of the hot loops
	STEPSCOPE_EXPECT=$(if $(EDITABLE),compiled,interpreted) $(PY) -m pytest tests/native

docs: $(DOCS)/.made ## the documentation as a site, in site/: offline, warnings are errors, links are checked
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet --strict
	@$(DOCS)/bin/python docs/_site/check.py site

docs-test: $(FRAMEWORKS)/.dev ## run every code block of the tutorials (TUTORIALS="pytorch jax" for some of them)
	PYTHONPATH=src $(FRAMEWORKS)/bin/python -m docs.make_tutorials $(TUTORIALS)

versions: $(VENV)/.run ## smoke tests with the lowest and the newest dependencies, on every Python of 3.10 to 3.14 found here
	$(PY) -m tests.versions $(VERSIONS)

bench: ## ours and the peers side by side; fails where we are slower or larger than promised
	@$(MAKE) --no-print-directory -j1 -k $(addprefix bench-,$(BENCHES))

$(addprefix bench-,$(BENCHES)): $(VENV)/.dev $(FRAMEWORKS)/.dev
bench-overhead:
	$(FRAMEWORKS)/bin/python -m benchmarks.overhead
bench-load:
	$(PY) -m benchmarks $(BENCH)
bench-commands:
	$(PY) -m benchmarks.commands $(COMMANDS)
bench-viewer:
	$(PY) -m benchmarks.viewer
bench-diagnosis:
	$(PY) -m benchmarks.diagnosis.score
bench-assistant:
	$(PY) -m benchmarks.assistant
bench-trying:
	$(PY) -m benchmarks.trying.same
	PYTHONPATH=src $(FRAMEWORKS)/bin/python -m benchmarks.trying
bench-diff:
	$(PY) -m benchmarks.diff
	PYTHONPATH=src $(FRAMEWORKS)/bin/python -m benchmarks.diff.beside_xprof
bench-ranks:
	$(PY) -m benchmarks.ranks
	$(PY) -m benchmarks.ranks --model discrete
	$(PY) -m benchmarks.ranks.scale

soak: $(VENV)/.dev fuzz-asan ## the property tests for much longer, damaged profiles, also under AddressSanitizer, and the page in a throttled browser
	$(ASAN) .venv-asan/bin/python -m benchmarks.fuzz --seconds $(FUZZ_SECONDS) --memory 4096
	$(PY) -m benchmarks.fuzz --seconds 60
	$(PY) -m benchmarks.fuzz.pipeline --count $(FUZZ_CASES) --upto 10000
	STEPSCOPE_SOAK=1 $(PY) -m pytest -n $(WORKERS) --dist worksteal --ignore tests/capture $(addprefix --ignore ,$(BROWSER_TESTS))
	STEPSCOPE_SOAK=1 $(MAKE) capture
	$(MAKE) web-tools && for seed in 1 2 3; do STEPSCOPE_SOAK=1 STEPSCOPE_SLOW_PAGE=$$seed STEPSCOPE_CHROMIUM=$(CHROMIUM) \
	  $(PY) -m pytest $(wildcard $(BROWSER_TESTS)) || exit; done

fuzz-asan: .venv-asan/.dev ## the compiled hot loops and readers under AddressSanitizer
	$(ASAN) STEPSCOPE_EXPECT=compiled .venv-asan/bin/python -m pytest tests/native tests/formats

wheels: $(BUILDER)/.made ## sdists and wheels of both distributions, compiled for this Python, in dist/
	@rm -rf dist
	$(BUILDER)/bin/python -m build --no-isolation --outdir dist packaging/capture >build/wheels.log 2>&1 || { tail -n 30 build/wheels.log; exit 1; }
	$(BUILDER)/bin/python -m build --no-isolation --outdir dist . >build/wheels.log 2>&1 || { tail -n 30 build/wheels.log; exit 1; }
	@ls -l dist

release-check: wheels $(FRAMEWORKS)/.dev ## all that a release needs (tests, wheels in clean environments of each Python, docs, links, licences of dependencies)
	$(MAKE) test
	$(PY) -m tests.distributions dist --frameworks $(FRAMEWORKS)
	$(if $(shell grep -s '^docs:' Makefile),$(MAKE) docs,@echo "SKIPPED: there is no target docs." >&2)

clean: ## remove everything that was made here
	rm -rf packaging/capture/src packaging/capture/build packaging/capture/LICENSE
	rm -rf .venv .venv-* node_modules build dist site demo-out .bench .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis src/*.egg-info
	find src tests benchmarks -name '__pycache__' -prune -exec rm -rf {} +
	find src -name '*.so' -delete

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null || { \
	  echo "stepscope needs Python 3.10 or newer as $(PYTHON). Try: make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. On Debian and Ubuntu: apt install python3-venv" >&2; exit 1; }
	@echo "Setting up $(VENV)" >&2
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(BUILDER)/.made: pyproject.toml
	@mkdir -p build
	@$(PYTHON) -m venv --clear $(BUILDER)
	@$(BUILDER)/bin/python $(PIP) build 'setuptools>=77' 'cython>=3.2'
	@touch $@

$(VENV)/.run: $(VENV)/.made $(PROJECT) $(SOURCES)
	@rm -rf build/lib* build/bdist*
	@# An environment from before there was a recorder: pip would remove files of the new one together with the old one.
	@$(PY) -c "from importlib.metadata import version; version('stepscope-capture')" 2>/dev/null || \
	  $(PY) -m pip uninstall -qq -y stepscope
	@$(INSTALL) $(OURS)
	@touch $@

# The tests of the hot loops need little: all of dev would take a minute to install.
$(VENV)/.hot: $(VENV)/.run
	@test -e $(VENV)/.dev || $(PY) -c "$(TOOLS_OF_DEV)" | tr ' ' '\n' | grep -E '^(pytest|hypothesis)[<>=]' | \
	  xargs $(PY) $(PIP)
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@$(PY) -c "$(TOOLS_OF_DEV)" | xargs $(PY) $(PIP)
	@touch $@

node_modules/.made: package.json
	@$(NPM) install --no-package-lock --no-audit --no-fund --silent >/dev/null 2>&1 || \
	  echo "npm could not install TypeScript." >&2
	@mkdir -p node_modules && touch $@

$(FRAMEWORKS)/.dev: $(VENV)/.run
	@echo "Setting up $(FRAMEWORKS), which takes a few minutes" >&2
	@test -x $(FRAMEWORKS)/bin/python || $(PYTHON) -m venv $(FRAMEWORKS)
	@$(PY) -c "$(NEEDED_TO_RUN)" | xargs $(FRAMEWORKS)/bin/python $(PIP) pytest pytest-xdist hypothesis
	@$(FRAMEWORKS)/bin/python $(PIP) $(FRAMEWORK_PACKAGES) || \
	  echo "Not all frameworks could be installed for this Python: their tests are skipped." >&2
	@touch $@

$(DOCS)/.made: $(PROJECT) | $(VENV)/.run
	@$(PYTHON) -m venv --clear $(DOCS)
	@$(PY) -c "$(TOOLS_OF_DOCS)" | tr ' ' '\n' | xargs $(DOCS)/bin/python $(PIP)
	@touch $@

.venv-asan/.dev: $(PROJECT) $(shell find src -name '*.py')
	@rm -rf build/lib* build/bdist*
	@$(PYTHON) -m venv --clear .venv-asan
	@CFLAGS='-fsanitize=address -fno-omit-frame-pointer -g -O1' LDFLAGS=-fsanitize=address \
	  .venv-asan/bin/python $(PIP) ./packaging/capture '.[dev]'
	@touch $@
