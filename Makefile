# Everything runs from a private .venv, made on first use; no root needed.
.DEFAULT_GOAL := help
.PHONY: help demo test test-container check bench soak crashpoints chaos zipapp docs plots clean

# The oldest supported Python comes first: what works there is what we promise.
PYTHONS ?= python3.11 python3.12 python3.13 python3
PY := .venv/bin/python
READY := .venv/.ready
PEERS := .venv/.peers
TYPED = agent_node arc sensors tools $(wildcard bench) tests

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## */  make \1\t/p' $(firstword $(MAKEFILE_LIST)) | expand -t 24

demo: $(READY)   ## five nodes and a hub on this machine, over real SSH, live; Ctrl-C ends it
	@trap : INT; if test -t 1; then $(PY) -m arc demo $(ARGS); else \
	  echo "stdout is no terminal: the demo ends by itself, as with --once" >&2; \
	  $(PY) -m arc demo --once $(ARGS); fi || { ended=$$?; test $$ended -eq 130 || exit $$ended; }

test: $(READY)   ## every tier of tests that this machine can run, and which it cannot and why
	$(PY) -m tools.all_tiers $(ARGS)

test-container: ## the tests that need root, in one privileged container (docker or podman)
	@engine=$$(command -v docker || command -v podman) || { \
	  echo "make: neither docker nor podman is here; see docs/ssh-tests.md" >&2; exit 1; }; \
	$$engine build -t arc-tests . && $$engine run --rm --privileged arc-tests

check: $(READY)  ## lint, types, fences
	$(PY) -m ruff check .
	$(PY) -m mypy $(TYPED)
	.venv/bin/lint-imports

bench: $(READY) $(PEERS) ## our figures beside the floor and the peers of the same machine (bench.json)
	$(PY) -m bench $(ARGS)

soak: $(READY)   ## the long tests, then every mutant must be caught (many minutes)
	$(PY) -m pytest -p tools.tiers -m soak $(ARGS)
	$(PY) tools/mutants.py

crashpoints: $(READY) ## each write, sync and rename fails, or ends its process (BUDGET=minutes)
	BUDGET=$(or $(BUDGET),10) $(PY) -m tests.chaos.crashpoints

chaos: $(READY)  ## random faults over container nodes: make chaos MINUTES=30 NODES=5 SEED=ada
	@$(PY) -m tests.ssh.chaos --minutes $(or $(MINUTES),5) --nodes $(or $(NODES),5) \
	  --seed $(or $(SEED),ada) $(ARGS)

zipapp: $(READY) ## dist/agent-node.pyz: the node as one file
	@mkdir -p dist
	$(PY) -c "from pathlib import Path; from agent_node.packing import build_zipapp; \
	  print(build_zipapp(Path('dist/agent-node.pyz')), 'dist/agent-node.pyz')"
	@ln -sf agent-node.pyz dist/agent-node

docs: $(READY)   ## rewrites the generated parts of docs/
	$(PY) -m tools.document

plots: $(READY)  ## measures the policies anew, and writes the pictures of docs/policy.md
	$(PY) -m tools.plots

clean:           ## removes .venv and everything built
	rm -rf .venv dist build bench.json .pytest_cache .mypy_cache .ruff_cache .hypothesis \
	  .import_linter_cache
	find agent_node arc sensors tools tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(READY): requirements/dev.txt pyproject.toml tools/make_venv.py
	@for python in $(PYTHONS); do \
	  if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	    exec $$python tools/make_venv.py; fi; done; \
	echo "make: no Python 3.11 or newer answers (tried: $(PYTHONS))" >&2; exit 1

# Without them the bench says "not installed" and goes on; the product needs none of them.
$(PEERS): requirements/peers.txt $(READY)
	@$(PY) -m pip --disable-pip-version-check install --quiet --require-hashes -r $< && touch $@ \
	  || echo "make: the peers could not be installed; the bench does without them" >&2
