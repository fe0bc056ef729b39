#!/usr/bin/env bash
# examples/run.sh [--seed=S] [--epochs=N]: builds the digits example and runs it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

.ci/packages.sh
cmake --preset release -DMULGRAD_TESTS=OFF >&2
cmake --build --preset release --target digits >&2
exec build/release/bin/digits "$@"
