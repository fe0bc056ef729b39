#!/usr/bin/env bash
# A few mutants per test run; `tests/mutation/run.sh` runs them all. Only in the preset dev.
exec "$(dirname "${BASH_SOURCE[0]}")/run.sh" --sample=4 --seed=1
