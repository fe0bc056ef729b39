#!/usr/bin/env bash
# tests/run.sh [PRESET] [CTEST ARGUMENTS...]: builds and runs the tests.
#   tests/run.sh                    all, preset dev
#   tests/run.sh asan-ubsan -L core those of tests/core, with sanitizers
# MULGRAD_WERROR=ON in the environment makes warnings errors.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=dev
if [ $# -gt 0 ] && [[ $1 != -* ]]; then
  preset=$1
  shift
fi

.ci/packages.sh tests
cmake --preset "$preset" -DMULGRAD_TESTS=ON -DMULGRAD_WERROR="${MULGRAD_WERROR:-OFF}"
cmake --build --preset "$preset"
ctest --test-dir "build/$preset" --output-on-failure --no-label-summary -j "$(nproc)" "$@"
