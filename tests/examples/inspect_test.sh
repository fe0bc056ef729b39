#!/usr/bin/env bash
# The inspect example: the programs that it prints, exactly, and that the values agree.
# MULGRAD_UPDATE_GOLDENS=1 in the environment writes the golden file anew.
set -euo pipefail
golden=$(dirname "${BASH_SOURCE[0]}")/inspect.golden.txt
output=$("$MULGRAD_BIN_DIR/inspect")

programs=$(sed '/^== On the interpreter$/,$d' <<<"$output")
if [ -n "${MULGRAD_UPDATE_GOLDENS:-}" ]; then
  printf '%s\n' "$programs" >"$golden"
fi
diff -u "$golden" <(printf '%s\n' "$programs")

failures=0
# bounded <text before the number>: it is printed, and at most 1e-12.
bounded() {
  local value
  value=$(sed -n "s/^$1: //p" <<<"$output")
  if ! awk -v x="$value" 'BEGIN { exit !(x ~ /^[0-9]/ && x + 0 <= 1e-12) }'; then
    echo "FAIL $1: '$value'"
    failures=$((failures + 1))
  fi
}
bounded 'rewritten against original'
bounded 'Hessian times v against the change of the gradient'
# By hand: the mean over 12 elements of (x @ w - y)^2.
if ! grep -qx 'loss 2.514167' <<<"$output" || [ "$(tail -1 <<<"$output")" != 'inspect: all agree' ]; then
  printf 'FAIL loss or last line\n%s\n' "$output"
  failures=$((failures + 1))
fi
[ "$failures" -eq 0 ] || exit 1
echo 'inspect_test: passed'
