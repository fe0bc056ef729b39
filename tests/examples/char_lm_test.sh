#!/usr/bin/env bash
# The character transformer on a short text: what it prints, that it learns, and that the seed pins
# what it writes.
set -euo pipefail

char_lm=$MULGRAD_BIN_DIR/char_lm
fail() { echo "char_lm_test: $*" >&2; exit 1; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Three sentences again and again: little to learn, so a short run shows it.
for _ in $(seq 20); do
  printf 'The quick brown fox jumps over the lazy dog.\nPack my box with five dozen jugs.\n'
done >"$work/text"

run() { "$char_lm" --text="$work/text" --epochs=8 --characters=50 --seed=3; }
run >"$work/output"
output=$(cat "$work/output")
for target in matmul_batched matmul_move matmul_only; do
  grep -qE "^one step of a smaller one: target=$target max_relative_difference=([0-9.]+e-0[5-9]|[0-9.]+e-1[0-9]|0\.0e\+00)$" \
    <<<"$output" || fail "no small difference for $target: $output"
done
[ "$(grep -c '^epoch ' <<<"$output")" -eq 8 ] || fail 'not one line per epoch'
summary=$(grep '^char_lm: ' <<<"$output") || fail 'no summary'
pattern='^char_lm: loss=([0-9.]+)\.\.([0-9.]+) tokens_per_second=[1-9][0-9]* target=matmul_batched unsupported=0 fallbacks=0$'
[[ $summary =~ $pattern ]] || fail "unexpected summary: $summary"
awk -v before="${BASH_REMATCH[1]}" -v after="${BASH_REMATCH[2]}" 'BEGIN { exit !(after <= before / 2) }' ||
  fail "the loss was not halved: $summary"

# 50 characters and a line's end follow, and the same ones again for the same seed.
written() { sed '1,/^char_lm: /d' "$1"; }
[ "$(written "$work/output" | wc -c)" -eq 51 ] || fail "not 50 characters: $(written "$work/output")"
run >"$work/again"
cmp -s <(written "$work/output") <(written "$work/again") || fail 'the same seed wrote another text'

# What cannot be learned from is an error, not a run.
if "$char_lm" --text="$work/none" >/dev/null 2>"$work/error"; then fail 'a missing file was accepted'; fi
grep -q 'none: cannot be read' "$work/error" || fail "unexpected error: $(cat "$work/error")"
printf 'short' >"$work/short"
if "$char_lm" --text="$work/short" >/dev/null 2>"$work/error"; then fail 'a short text was accepted'; fi
grep -q 'found 5 characters, expected more than 32' "$work/error" || fail "unexpected error: $(cat "$work/error")"
if "$char_lm" --temperature=-1 >/dev/null 2>&1; then fail '--temperature=-1 was accepted'; fi
