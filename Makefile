# The commands of this house. They need Python 3.11+ and make; the tests also install the servers they need.
PYTHON ?= python3
PYTEST_ARGS ?=
# Processes that run tests at the same time, each with its own servers. Half of the time they wait.
WORKERS ?= 4
VENV := .venv
BIN := $(VENV)/bin
TEST_STAMP := $(VENV)/.test-installed
DEMO_STAMP := $(VENV)/.demo-installed
DIST_STAMP := $(VENV)/.dist-installed

# The tests start the runner hundreds of times; cached bytecode makes each start a third faster.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: test test-languages languages servers demo lint docs screenshots bench-peers soak dist release clean

test: $(TEST_STAMP) servers
	$(BIN)/pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# The clients in examples/ for other languages, listed in tests/languages/languages.py. A language that is
# missing is skipped, and pytest reports it. About five minutes with two processors. Each test has many processes.
test-languages: $(TEST_STAMP) servers languages
	$(BIN)/pytest tests/languages --level 3 -n 3 --dist worksteal $(PYTEST_ARGS)

# Compilers, drivers and formatters: installs missing Debian packages. The tests install npm's drivers.
languages: | $(BIN)/python
	@$(BIN)/python tests/languages/languages.py

# Only programs: the packages' services are not needed. MariaDB, MySQL and Firebird are unpacked
# under .servers/, several versions side by side, without root.
servers: | $(BIN)/python
	@missing=""; \
	[ -x /usr/lib/postgresql/15/bin/postgres ] || missing="$$missing postgresql-15"; \
	[ -x /usr/sbin/pgbouncer ] || command -v pgbouncer >/dev/null || missing="$$missing pgbouncer"; \
	[ -x /usr/bin/chromium ] || missing="$$missing chromium"; \
	[ -x /usr/sbin/nginx ] || missing="$$missing nginx-light"; \
	command -v prometheus >/dev/null || missing="$$missing prometheus"; \
	command -v tmux >/dev/null || missing="$$missing tmux"; \
	if [ -z "$$missing" ]; then exit 0; fi; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
		apt-get update -qq && apt-get install -y -qq --no-install-recommends $$missing >/dev/null \
		|| echo "make: could not install$$missing; the tests on them are skipped" >&2; \
	else \
		echo "make: the tests on$$missing are skipped: not installed, and only root can (apt-get install$$missing)" >&2; \
	fi
	@$(BIN)/python tests/servers/fetch.py || true

demo: $(DEMO_STAMP)
	$(BIN)/runner demo

lint: $(TEST_STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The reference from the contract, then the site in build/site. A warning, such as a broken link, is an error.
docs: $(TEST_STAMP)
	$(BIN)/python tools/docs/build.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict

# The files of a release in dist/: the SQL of each database as one script, and the runner's wheel.
dist: $(DIST_STAMP)
	mkdir -p dist
	for name in postgresql mysql sqlserver firebird; do \
		$(BIN)/runner sql --database $$name > dist/rowqueue-$$name.sql || exit 1; \
	done
	$(BIN)/pip wheel -q --disable-pip-version-check --no-deps --wheel-dir dist .

# A release of the version in pyproject.toml, in dist/. docs/background/contributing.md has the steps before
# and after. Nothing is pushed or uploaded.
release: $(TEST_STAMP)
	$(BIN)/python releases/release.py --check
	$(MAKE) lint
	$(BIN)/pytest -q tests/static
	$(BIN)/python releases/release.py

# The screenshots in docs/images, with Debian's Chromium.
screenshots: $(TEST_STAMP)
	$(BIN)/python tools/docs/screenshots.py

# rowqueue compared with other queues, each with its own worker: benchmarks/PEERS.md. About 40 minutes with two processors;
# PEERS_ARGS=--quick: three minutes, PEERS.md unchanged. Peers from PyPI and npm go to .peers/; Laravel's and
# Rails' are Debian packages: apt-get install php-cli php-mysql php-illuminate-queue php-illuminate-database
# ruby-delayed-job-active-record ruby-mysql2.
PEERS_ARGS ?=
bench-peers: $(TEST_STAMP) servers
	$(BIN)/python benchmarks/peers/run.py --install $(PEERS_ARGS)

# Hours of mixed work on one engine; fails when something grows or slows down. build/soak-ENGINE.svg shows the run,
# build/soak-ENGINE.csv has its figures. benchmarks/README.md describes the work and the rules.
HOURS ?= 1
ENGINE ?= postgresql-15
RATE ?= 100
soak: $(TEST_STAMP) servers
	$(BIN)/python benchmarks/soak.py --server $(ENGINE) --hours $(HOURS) --rate $(RATE)

clean:
	rm -rf $(VENV) .peers build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "rowqueue needs Python 3.11 or later; set PYTHON=")'
	$(PYTHON) -m venv $(VENV)

$(TEST_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install -q --disable-pip-version-check -e '.[postgresql,mysql,firebird,sqlserver,embedded,web,top,demo,docs,test]'
	@touch $@

$(DEMO_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install -q --disable-pip-version-check -e '.[embedded,web,top,demo]'
	@touch $@

$(DIST_STAMP): pyproject.toml | $(BIN)/python
	$(BIN)/pip install -q --disable-pip-version-check -e '.[postgresql,mysql,firebird,sqlserver]'
	@touch $@
