#!/usr/bin/env bash
# The installed package serves a CMake project of its own.
set -euo pipefail

build=$(dirname "$MULGRAD_BIN_DIR")
work=$build/package_test  # always the same place, so that a compiler cache knows it
rm -rf "$work"
trap 'rm -rf "$work"' EXIT

cmake --install "$build" --component library --prefix "$work/installed" >"$work.log"
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache); fi
cmake -S tests/package -B "$work/consumer" -G Ninja -DCMAKE_BUILD_TYPE=Debug \
  -DCMAKE_PREFIX_PATH="$work/installed" "${launcher[@]}" >>"$work.log"
cmake --build "$work/consumer" >>"$work.log" || { cat "$work.log"; exit 1; }
found=$("$work/consumer/consumer")
[ "$found" = 'weight 2.000' ] || { echo "found '$found', expected 'weight 2.000'"; exit 1; }

# Headers that the package does not hold are not found beside it by chance.
[ -z "$(find "$work/installed" -name '*.cc')" ]
[ -f "$work/installed/include/mulgrad/core/program.h" ]
