# SPDX-License-Identifier: Apache-2.0
# Thin: what people type. The build itself is CMake's (CMakePresets.json); the longer commands are scripts in tools/.
.PHONY: all build deps check demo dist gpu-check clean help

all: build

build:      ## the release build: build/fastkernels, build/libfastkernels.{so,a}, the CUDA plugin where nvcc is
	@cmake --preset release > /dev/null
	@cmake --build --preset release

deps:       ## installs the packages that are missing
	@tools/install-deps

check: deps ## builds and tests release and sanitizer builds; ends with "N passed, N failed, N skipped"
	@tools/fetch-assets || echo "check: not every asset is at hand, tests that need one will be skipped"
	@tools/check

demo: deps  ## a real model answers, is captured, benched and evaluated, with a report; DEVICE=cuda on a machine with a GPU
	@tools/demo $(if $(DEVICE),--device $(DEVICE))

dist: deps  ## dist/: what runs where only glibc, a driver and the CUDA libraries are
	@tools/dist

gpu-check:  ## tests and measures on a machine with a GPU; reports to results/<device>/
	@tools/gpu/check

clean:      ## removes what was built
	rm -rf build build-asan build-debug build-cuda dist

help:       ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 20
