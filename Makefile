# The commands of Tahoma. `make help` lists them; CONTRIBUTING.md says more.
SHELL := /bin/bash
.ONESHELL:
.SHELLFLAGS := -euo pipefail -c
.PHONY: help setup programs build demo up down test test-cluster test-node test-versions test-kind images install krew sim test-asan test-asan-part test-tsan fuzz tidy bench collectives format clean

STATE ?= $(CURDIR)/build/up
BENCH ?= .
# For `make fuzz`: TIME for each target (60s, or 5m at a time with LEAST); LEAST processor time that
# each target must have used in all runs; TARGET to run (all when empty).
TIME ?=
LEAST ?=
TARGET ?=
# Compiling is what takes memory: about 1 GiB a job.
JOBS ?= $(shell nproc)

help:  ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  make \1 - /p' Makefile

setup:  ## install what building and testing need (Debian 12, root)
	@.ci/setup

programs: setup  ## build the programs in Release
	@mkdir -p build; cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	.ci/build release $(JOBS) programs

build: programs  ## build everything in Release, tests too
	@.ci/build release $(JOBS)

demo: programs  ## the main job, end to end, on this machine; nothing stays running
	@examples/local/demo.sh

up: programs  ## start a controller and six simulated nodes, and keep them running
	@PATH="$$(dirname $$(.ci/kubectl)):$$PATH" examples/local/up.py $(STATE)

down:  ## stop what `make up` started
	@examples/local/down.py $(STATE) && rm -rf $(STATE)

test: build  ## unit tests, simulation and scenarios on the standalone server
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	ctest --preset release --no-tests=error

SEEDS ?= 100
sim: setup  ## the simulation on SEEDS=n seeds that nobody has tried; a failure says how to repeat it
	@mkdir -p build; cmake --preset release >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	.ci/build release $(JOBS) sim_test
	build/release/bin/sim_test --fresh=$(SEEDS)

test-node: build  ## a node's life, manifests for AWS's driver and the scenarios on real kubelets with containerd and runc
	@.ci/setup node
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	tests/cluster/run.sh node

test-cluster: test-node  ## that, and the same scenarios and conformance on a real Kubernetes control plane
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	tests/cluster/run.sh cluster

test-versions: build  ## some scenarios on Kubernetes 1.34 and 1.35
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	tests/cluster/run.sh versions

images: programs  ## make the images of images/Dockerfile in build/images, without Docker
	@images/images.py build/images

PREFIX ?= /usr/local
BIN ?= $(CURDIR)/build/release/bin
install:  ## put kubectl-tahoma and its completion in PREFIX=/usr/local, after `make programs`
	@bin=$(DESTDIR)$(PREFIX)/bin share=$(DESTDIR)$(PREFIX)/share
	install -d $$bin $$share/bash-completion/completions $$share/zsh/site-functions
	install -m 755 $(BIN)/kubectl-tahoma $$bin/kubectl-tahoma
	ln -sf kubectl-tahoma $$bin/kubectl_complete-tahoma
	$(BIN)/kubectl-tahoma completion bash >$$share/bash-completion/completions/kubectl-tahoma
	$(BIN)/kubectl-tahoma completion zsh >$$share/zsh/site-functions/_kubectl-tahoma

krew: programs  ## make the archive and the manifest of `kubectl krew install` in build/krew
	@packaging/krew/krew.py build/krew

test-kind: build  ## install the chart on a cluster of kind and run the scenarios there
	@.ci/setup kind
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	tests/cluster/run.sh kind

test-asan: setup  ## everything but scenarios under AddressSanitizer and UBSan
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	cmake --preset debug >/dev/null
	.ci/build debug $(JOBS)
	ctest --preset debug -LE scenario

test-asan-part: setup  ## of these the ones that thread or parse and compile soon: what CI affords
	@cmake --preset debug >/dev/null
	.ci/build debug $(JOBS) sanitize_tests
	ctest --preset debug -L sanitize

# The simulation and what has the label one-thread start no thread: nothing to see there.
test-tsan: setup  ## tests that use threads, but scenarios, under ThreadSanitizer
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	cmake --preset tsan >/dev/null
	.ci/build tsan $(JOBS) thread_tests
	TSAN_OPTIONS="suppressions=$(CURDIR)/cmake/tsan.supp" ctest --preset tsan -LE 'scenario|simulation|one-thread'

fuzz:  ## search with libFuzzer for inputs that break us; TIME=5m for each target, LEAST=1h until each has had it, TARGET=name
	@.ci/setup fuzz
	@mkdir -p build; cmake --preset fuzz >build/configure.log 2>&1 || { cat build/configure.log; exit 1; }
	.ci/build fuzz $(JOBS) $(if $(TARGET),fuzz_$(TARGET),fuzzers)
	@tests/fuzz/run.py $(if $(TIME),--time $(TIME)) $(if $(LEAST),--least $(LEAST)) --jobs $(JOBS) $(TARGET)

tidy:  ## clang-format, clang-tidy and the repository's own rules
	@.ci/setup tidy
	tests/tidy/run.sh

collectives: programs  ## table and picture of what collectives cost in the emulator, in build/
	.ci/build release $(JOBS) collective_table
	@tests/bench/collective_table.py

bench: build  ## run the benchmarks of docs/performance.md; BENCH=regex selects rows
	@KUBECTL=$$(.ci/kubectl); export KUBECTL PATH="$$(dirname $$KUBECTL):$$PATH"
	.ci/build release $(JOBS) benches
	tests/bench/run.py '$(BENCH)'

format: ## clang-format every source
	@git ls-files '*.h' '*.cc' | xargs clang-format -i

clean:
	rm -rf build
