#!/usr/bin/env bash
# tests/run.sh [PRESET] [CTEST ARGUMENTS...]: builds and runs the tests that the arguments choose.
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

groups=(tests)
case $preset in clang | asan-ubsan | tsan) groups+=(clang) ;; esac
.ci/packages.sh "${groups[@]}"
cmake --preset "$preset" -DMULGRAD_TESTS=ON -DMULGRAD_WERROR="${MULGRAD_WERROR:-OFF}"

targets=(all)
if [ $# -gt 0 ]; then
  mapfile -t chosen < <(ctest --test-dir "build/$preset" --show-only "$@" |
    sed -nE 's/^ *Test +#[0-9]+: //p')
  targets=()
  for test in "${chosen[@]}"; do
    case $test in
      snippets/*) target=snippet_${test#*/} ;;
      *) target=${test//\//_} ;;
    esac
    # A script runs any of the programs.
    [ ! -e "tests/$test.sh" ] || target=all
    targets+=("$target")
  done
fi
[ ${#targets[@]} -gt 0 ] || { echo "run.sh: no test is chosen by: $*" >&2; exit 2; }
cmake --build --preset "$preset" --target "${targets[@]}"
ctest --test-dir "build/$preset" --output-on-failure --no-label-summary -j "$(nproc)" "$@"
