# Two commands for newcomers: `make demo` and `make test`. `make help` lists the rest.
PYTHON  ?= python3.11
VENV    := .venv
BIN     := $(CURDIR)/$(VENV)/bin
export PATH := $(BIN):/usr/local/sbin:/usr/sbin:/sbin:$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# What virtual boards and the native runner need; Debian names.
SYSTEM_PACKAGES := bash busybox-static coreutils dosfstools e2fsprogs g++ git iproute2 libc-bin mount \
                   mtools openssh-client openssh-server openssh-sftp-server parted util-linux
# Debian's python3.11 comes without the module that makes environments.
VENV_PACKAGE     = $(shell $(PYTHON) -c 'import ensurepip' 2>/dev/null || echo python3-venv)
# What the kernel tests need besides: riscv64 code, compiled in both spellings of the intrinsics.
TEST_PACKAGES   := clang-14 clang-15 clang-19 g++-riscv64-linux-gnu lld-19 llvm-19 qemu-user

.DEFAULT_GOAL := help
.PHONY: help demo boards boards-down setup setup-test packages test-packages lint unit integration test faults benchmarks clean

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 16

# Boards are stopped however it ends; those who press Ctrl-C twice do not interrupt that.
demo: setup ## two virtual boards, one trained model, one accuracy report
	@set -e; trap 'trap "" INT TERM; k230 boards down >/dev/null' EXIT; trap 'exit 130' INT TERM; \
	ansible-playbook playbooks/virtual_boards.yml; \
	ansible-playbook evaluate.yml

boards: setup ## start the two virtual boards of inventory/virtual and leave them running
	ansible-playbook playbooks/virtual_boards.yml

boards-down: setup ## stop them; their cards are kept
	ansible-playbook playbooks/virtual_boards.yml -e virtual_boards_state=absent

setup: packages $(VENV)/.installed ## make .venv and install what is needed
setup-test: test-packages setup $(VENV)/.installed-test

packages:
	@$(call install_packages,$(SYSTEM_PACKAGES) $(VENV_PACKAGE))

test-packages: packages
	@$(call install_packages,$(TEST_PACKAGES))

$(VENV)/.installed: pyproject.toml k230_lib/dataset/resample.c
	@test -x $(VENV)/bin/pip || $(PYTHON) -m venv $(VENV) || { \
	  echo "no Python 3.11 here: install it, or name one by make PYTHON=..." >&2; exit 1; }
	$(VENV)/bin/pip install --quiet --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(VENV)/.installed
	$(VENV)/bin/pip install --quiet --editable '.[test]'
	@touch $@

lint: setup-test ## ruff, mypy --strict, yamllint, ansible-lint (production profile)
	ruff check .
	ruff format --check .
	mypy
	yamllint --strict .
	ansible-lint --offline --profile production

unit: setup-test ## unit tests: no root, no board, under two minutes
	pytest tests/unit

integration: setup-test ## virtual boards, real tools, real model
	pytest tests/integration -m 'not fault'

# Two processes: unit tests import ansible, which patches sys.intern, and torch won't load after it.
test: lint ## everything that the gate runs
	pytest tests/unit
	pytest tests/integration -m 'not fault' --durations=25

faults: setup-test ## long fault and scale runs (35 minutes)
	pytest tests/faults tests/integration -m fault

# All of them run, also behind one that misses what it requires. Only ratios on an idle machine count.
benchmarks: setup-test ## speed and memory against plain tools; as root also dataset_sync
	@failed=; run() { echo "== $$*"; "$$@" || failed="$$failed$$*; "; }; \
	run python -m tests.benchmarks.preprocess; \
	run python -m tests.benchmarks.memory --counts 1000 5000; \
	run python -m tests.benchmarks.export; \
	run pytest -q -s tests/benchmarks/test_profiling_speed.py; \
	if [ "$$(id -u)" = 0 ]; then run python -m tests.benchmarks.sync; \
	else echo "== tests.benchmarks.sync left out: virtual boards need root"; fi; \
	if [ -n "$$failed" ]; then echo "failed: $$failed" >&2; exit 1; fi

clean: ## remove products of runs; .venv, runs/ and board cards are kept
	rm -rf artifacts build kernels/build* .pytest_cache .mypy_cache .ruff_cache .hypothesis

# install_packages LIST: as root install what is missing, else print the one command.
define install_packages
missing=$$(for p in $(1); do \
  dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' || printf '%s ' $$p; done); \
if [ -n "$$missing" ]; then \
  if [ "$$(id -u)" = 0 ]; then \
    echo "installing Debian packages: $$missing"; \
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
      apt-get install -qq -y --no-install-recommends $$missing >/dev/null; \
  else \
    echo "Debian packages are missing; run: sudo apt-get install --no-install-recommends $$missing" >&2; exit 1; \
  fi; \
fi
endef
