# `make demo` and `make test` do all the set-up themselves; a second run repeats only
# what changed. Everything is written below .venv, .deps and build.
#
#   make demo       see where the cycles of a matmul and of flash attention go
#   make            build the wheel and install it into .venv
#   make test       lint, C++ tests, lit, pytest; also make lint, make lint-all
#   make format     let ruff and clang-format rewrite what they can
#   make corpus     every kernel of the tests and of real libraries; writes docs/corpus.md
#   make audit      what ptxas makes of every kernel of the tests; writes docs/audit.md
#   make accuracy   what is reported of each, against the truth; writes docs/accuracy.md
#   make bench      figures of benchmarks/; writes benchmarks/RESULTS.md and plots of it in docs/img
#   make asan       the C++ tests under sanitizers
#   make abi-audit LIBTRITON=<file>  compare a libtriton.so with the headers
#   make deps-test  the set-up alone
#
# PYTHON, CXX, KPERFIR_LLVM_DIR, or KPERFIR_LLVM_ARCHIVE with KPERFIR_LLVM_SHA256,
# override what is found; docs/dependencies.md says what they are.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.ONESHELL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := install

PYTHON ?= $(if $(shell command -v python3.11),python3.11,python3)
BIN := .venv/bin
PIP := $(BIN)/python -m pip --quiet --disable-pip-version-check
WHEEL_BUILD := build/wheel
STAMPS := build/stamps
export CXX KPERFIR_CHROMIUM

# An LLVM of the user's own is used as it is; otherwise one is fetched into .deps.
LLVM_READY := $(if $(KPERFIR_LLVM_DIR),,.deps/llvm/VERSION)
LLVM_SETTING := $(if $(KPERFIR_LLVM_DIR),--config-settings cmake.define.KPERFIR_LLVM_DIR=$(KPERFIR_LLVM_DIR))
LLVM_ARCHIVE := $(if $(KPERFIR_LLVM_ARCHIVE),--archive $(KPERFIR_LLVM_ARCHIVE) --sha256 $(KPERFIR_LLVM_SHA256))

# What the wheel is made of; the list itself is a prerequisite, so that a removed file counts.
SOURCES := $(sort CMakeLists.txt pyproject.toml LICENSE $(wildcard README.md) \
  $(shell find kperfir lib passes python tools/cmake -type f -not -path '*/__pycache__/*'))

TEST_SOURCES := $(shell find test -name CMakeLists.txt -o -name '*.cpp' -o -name '*.h')

.PHONY: install demo test lint lint-all format corpus audit accuracy bench asan abi-audit deps deps-test clean FORCE

install: $(STAMPS)/installed
	@echo "kperfir is installed: .venv/bin/kperfir"

demo: install
	@$(BIN)/kperfir demo

test: install $(STAMPS)/tests-built $(STAMPS)/libtriton .deps/chromium/VERSION
	@$(BIN)/python tools/run_tests.py

lint: install $(BIN)/.stamp-test
	@$(BIN)/python tools/lint.py

lint-all: install $(BIN)/.stamp-test
	@$(BIN)/python tools/lint.py --all

format: $(BIN)/.stamp-test
	@$(BIN)/python tools/lint.py --fix

corpus: install $(BIN)/.stamp-test
	@$(BIN)/python benchmarks/run.py --corpus

audit: install $(BIN)/.stamp-test
	@$(BIN)/python benchmarks/run.py --audit

accuracy: install $(BIN)/.stamp-test
	@$(BIN)/python benchmarks/run.py --accuracy

bench: install $(BIN)/.stamp-test $(BIN)/.stamp-bench
	@$(BIN)/python benchmarks/run.py
	$(BIN)/python benchmarks/plots.py

asan: deps-test
	@$(BIN)/cmake --preset asan
	$(BIN)/cmake --build --preset asan
	$(BIN)/ctest --preset asan

abi-audit: deps-test
	@PYTHONPATH=test $(BIN)/python -m abi.audit $(LIBTRITON)

deps: $(BIN)/.stamp-build $(LLVM_READY)

deps-test: deps $(BIN)/.stamp-test .deps/googletest/VERSION .deps/chromium/VERSION $(STAMPS)/libtriton

clean:
	@rm -rf build

# --- set-up -------------------------------------------------------------------

$(STAMPS)/prerequisites: tools/check_prerequisites.sh
	@mkdir -p $(@D)
	sh tools/check_prerequisites.sh "$(PYTHON)" "$(CXX)"
	touch $@

$(BIN)/.stamp-build: tools/requirements-build.txt | $(STAMPS)/prerequisites
	@echo "== environment .venv: build tools and run-time packages"
	test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(PIP) install --only-binary=:all: -r $<
	touch $@

$(BIN)/.stamp-test: tools/requirements-test.txt $(BIN)/.stamp-build
	@echo "== environment .venv: test tools"
	$(PIP) install --only-binary=:all: -r $<
	touch $@

$(BIN)/.stamp-bench: tools/requirements-bench.txt $(BIN)/.stamp-build
	@echo "== environment .venv: plots"
	$(PIP) install --only-binary=:all: -r $<
	touch $@

.deps/llvm/VERSION: | $(BIN)/.stamp-build
	@echo "== MLIR headers and mlir-tblgen"
	$(BIN)/python tools/fetch_sources.py llvm $(LLVM_ARCHIVE)

.deps/googletest/VERSION: | $(BIN)/.stamp-build
	@echo "== GoogleTest sources"
	$(BIN)/python tools/fetch_sources.py googletest

.deps/chromium/VERSION: | $(BIN)/.stamp-build
	@echo "== Chromium, for the tests of the HTML report"
	$(BIN)/python tools/fetch_chromium.py

# Every build of Triton that the plugin accepts, whatever Python this machine has.
$(STAMPS)/libtriton: kperfir/compile/audited_libtriton.json $(BIN)/.stamp-build
	@echo "== audited builds of libtriton.so"
	mkdir -p $(@D)
	$(BIN)/python tools/fetch_sources.py libtriton
	touch $@

# --- build --------------------------------------------------------------------

$(STAMPS)/sources.list: FORCE
	@mkdir -p $(@D)
	printf '%s\n' $(SOURCES) | cmp -s - $@ || printf '%s\n' $(SOURCES) > $@

$(STAMPS)/wheel: $(SOURCES) $(STAMPS)/sources.list $(BIN)/.stamp-build | $(LLVM_READY)
	@echo "== wheel"
	rm -rf build/wheelhouse
	PATH="$(CURDIR)/$(BIN):$$PATH" $(PIP) wheel . --no-deps --no-index --no-build-isolation \
	  --wheel-dir build/wheelhouse --config-settings build-dir=$(WHEEL_BUILD) $(LLVM_SETTING)
	$(BIN)/python tools/tag_wheel.py build/wheelhouse/*.whl
	touch $@

$(STAMPS)/installed: $(STAMPS)/wheel
	@$(PIP) install --no-deps --no-index --force-reinstall build/wheelhouse/*.whl
	touch $@

$(STAMPS)/tests-built: $(STAMPS)/wheel $(BIN)/.stamp-test .deps/googletest/VERSION $(TEST_SOURCES)
	@echo "== C++ tests"
	$(BIN)/cmake -DKPERFIR_BUILD_TESTS=ON $(WHEEL_BUILD) > build/tests-configure.log \
	  || { cat build/tests-configure.log; exit 1; }
	$(BIN)/cmake --build $(WHEEL_BUILD)
	touch $@
