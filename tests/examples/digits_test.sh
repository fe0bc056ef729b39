#!/usr/bin/env bash
# The digits example over seeds 0 to 4: what it prints, and how well it learns.
set -euo pipefail

digits=$MULGRAD_BIN_DIR/digits
fail() { echo "digits_test: $*" >&2; exit 1; }

accuracies=()
for seed in 0 1 2 3 4; do
  output=$("$digits" --seed=$seed --epochs=30)
  [[ $(head -n 1 <<<"$output") == 'target matmul_only: '*' 0 unsupported' ]] ||
    fail "the coverage table does not come first: $(head -n 1 <<<"$output")"
  [ "$(grep -c '^epoch ' <<<"$output")" -eq 30 ] || fail "not one line per epoch, seed $seed"
  last=$(tail -n 1 <<<"$output")
  pattern="^digits: accuracy=([01]\.[0-9]{3}) seed=$seed epochs=30 target=matmul_only unsupported=0 fallbacks=0$"
  [[ $last =~ $pattern ]] || fail "unexpected last line: $last"
  accuracies+=("${BASH_REMATCH[1]}")
done
mapfile -t sorted < <(printf '%s\n' "${accuracies[@]}" | sort -n)
echo "accuracies ${sorted[*]}"
awk -v least="${sorted[0]}" -v median="${sorted[2]}" \
  'BEGIN { exit !(least >= 0.94 && median >= 0.965) }' ||
  fail "expected each at least 0.94 and the median at least 0.965"

# Bad usage is an error, not a run.
if "$digits" --epochs=0 >/dev/null 2>&1; then fail '--epochs=0 was accepted'; fi
if "$digits" --seed=x >/dev/null 2>&1; then fail '--seed=x was accepted'; fi
