#!/usr/bin/env bash
# The C backend example: what it prints and writes, and that it notices a backend that is wrong.
set -euo pipefail
example=$MULGRAD_BIN_DIR/custom_backend
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# expect <case> <command...>: the command succeeds.
expect() {
  local name=$1
  shift
  if ! "$@" >"$work/why" 2>&1; then
    printf 'FAIL %s\n%s\n' "$name" "$(head -20 "$work/why")"
    failures=$((failures + 1))
  fi
}
# below <number> <bound>: a finite number in 0 .. bound.
below() { awk -v x="$1" -v bound="$2" 'BEGIN { exit !(x ~ /^[0-9]/ && x + 0 <= bound) }'; }
same() { [ "$1" = "$2" ] || { echo "found '$1', expected '$2'"; return 1; }; }

status=0
"$example" --out="$work/steps.c" >"$work/out" 2>"$work/err" || status=$?
expect 'exit code' same "$status" 0
expect 'nothing on standard error' same "$(cat "$work/err")" ''
expect 'all nodes are covered' grep -qE '^target matmul_only: .* 0 unsupported$' "$work/out"
expect 'every op agrees' grep -qx 'every op, against the interpreter: agrees' "$work/out"

# Every tensor of the digits agrees; they are not compared with themselves, so the worst is not 0.
tensors='layer0.weight layer0.bias layer2.weight layer2.bias'
for tensor in $tensors; do
  for name in "$tensor" "$tensor.momentum"; do
    gap=$(awk -v name="$name" '$1 == name { print $2 }' "$work/out")
    expect "digits: $name" below "$gap" 1e-5
  done
done
expect 'digits: losses' below "$(sed -n 's/^  loss of every step *//p' "$work/out")" 1e-5
expect 'digits: batches' grep -q ' 45 batches of which the last has 30 rows$' "$work/out"
last=$(tail -1 "$work/out")
summary='^custom_backend: digits agree (worst \([^)]*\)), xor learned (loss \([^)]*\))$'
worst=$(sed -n "s/$summary/\1/p" <<<"$last")
expect 'last line: worst' below "$worst" 1e-5
expect 'last line: worst above 0' awk -v x="$worst" 'BEGIN { exit !(x > 0) }'
expect 'last line: loss' below "$(sed -n "s/$summary/\2/p" <<<"$last")" 0.01
for row in '0 xor 0 = 0' '0 xor 1 = 1' '1 xor 0 = 1' '1 xor 1 = 0'; do
  predicted=$(sed -n "s/^  $row, predicted //p" "$work/out")
  expect "xor: $row" awk -v x="$predicted" -v y="${row: -1}" \
    'BEGIN { d = x - y; exit !(x ~ /^[0-9]/ && d < .5 && d > -.5) }'
done

# The file: one function per bound batch size, each step once.
functions=$(sed -nE 's/^void ([a-z0-9_]*_step_[0-9]+)\($/\1/p' "$work/steps.c" | paste -sd' ')
expect 'steps in the file' same "$functions" 'digits_step_32 digits_step_30 xor_step_4'
expect 'C99 without a warning' cc -std=c99 -pedantic -Wall -Wextra -Wno-unused-parameter -Werror \
  -fsyntax-only "$work/steps.c"

# Only ops of matmul_only are written: each array stands under a comment that names its op.
allowed='constant|dot_general|negate|abs|sign|exponential|exponential_minus_one|log|log_plus_one'
allowed+='|sqrt|rsqrt|tanh|logistic|sine|cosine|floor|ceil|round_nearest_even|not|is_finite|erf'
allowed+='|convert|add|subtract|multiply|divide|maximum|minimum|power|and|or|compare|select|clamp'
allowed+='|reshape|transpose'
sed -nE 's,^ */\* [^ ]+:%[0-9]+ (.*) \*/$,\1,p' "$work/steps.c" |
  sed -E 's/.* \(as ([^)]*)\)$/\1/; s/^(stablehlo|chlo)\.//' | sort -u >"$work/ops"
expect 'ops are named' test "$(wc -l <"$work/ops")" -ge 30
expect 'ops of the target alone' same "$(grep -vxE "$allowed" "$work/ops" || true)" ''

# No hidden broadcast: in an elementwise loop each array has the size of the result and is read at
# [i], or has one element and is read at [0]; and there are as many triple loops as products.
cat >"$work/loops.awk" <<'AWK'
function check(text, index_text, count,   name) {
  while (match(text, /[A-Za-z_][A-Za-z0-9_]*\[[^]]*\]/)) {
    name = substr(text, RSTART, RLENGTH)
    index_text = name
    sub(/\[.*/, "", name)
    gsub(/^[^[]*\[|\]$/, "", index_text)
    if (!(name in size)) print FNR ": " name " is not declared"
    if (index_text != "i" && index_text != "0") print FNR ": index " index_text
    if (size[name] != (index_text == "i" ? count : 1)) print FNR ": size of " name
    text = substr(text, RSTART + RLENGTH)
  }
}
/^void [a-z0-9_]*_step_[0-9]+\(/ { exit_function = 1 }  # strings calls together, computes nothing
/^}/ { exit_function = 0 }
exit_function { next }
/^ *(static )?(const )?(float|double|unsigned char|u?int[0-9]+_t) [A-Za-z0-9_]+\[[0-9]+\]/ {
  match($0, /[A-Za-z_][A-Za-z0-9_]*\[[0-9]+\]/)
  name = declared = substr($0, RSTART, RLENGTH)
  sub(/\[.*/, "", name)
  sub(/^[^[]*\[/, "", declared)
  size[name] = declared + 0
  next
}
/^  \/\*.*dot_general(\)| \*)/ { products++ }
/for \(long k = 0;/ { triples++ }
/^  for \(long i = 0; i < [0-9]+; \+\+i\) t[0-9]+\[i\] = / {
  count = $0
  sub(/^.*i < /, "", count)
  sub(/^[^)]*\) /, "", $0)
  sub(/^for.*\+\+i\) /, "", $0)
  check($0, "", count + 0)
  loops++
}
/^  t[0-9]+\[0\] = / { check($0, "", 1); loops++ }
END {
  if (loops < 100) print "only " loops " elementwise loops"
  if (products < 20 || products != triples) print products " products, " triples " triple loops"
}
AWK
expect 'no hidden broadcast' same "$(awk -f "$work/loops.awk" "$work/steps.c")" ''
awk '{ print } /t12\[i\] = / { sub(/\[i\];$/, "[0];"); print }' "$work/steps.c" >"$work/hidden.c"
expect 'the check sees a hidden broadcast' \
  grep -qE ': size of ' <(awk -f "$work/loops.awk" "$work/hidden.c")

# A compiler that is missing or fails.
status=0
"$example" --cc="$work/none" >/dev/null 2>"$work/err" || status=$?
expect 'missing compiler: exit code' same "$status" 1
expect 'missing compiler: message' grep -qF "io_error: cannot run the C compiler \"$work/none\"" \
  "$work/err"
status=0
"$example" --out="$work/no/steps.c" >/dev/null 2>"$work/err" || status=$?
expect 'no such folder: exit code' same "$status" 1
expect 'no such folder: message' grep -qF "io_error: cannot write $work/no/steps.c" "$work/err"

# sabotage <sed expression> <pattern>: a compiler that changes the file must be found out.
sabotage() {
  printf '%s\n' '#!/bin/sh' 'for a; do case $a in *.c) sed -i "$SABOTAGE" "$a" ;; esac; done' \
    'exec cc "$@"' >"$work/cc"
  chmod +x "$work/cc"
  status=0
  SABOTAGE=$1 "$example" --cc="$work/cc" >"$work/out" 2>"$work/err" || status=$?
  expect "sabotage $1: exit code" same "$status" 1
  expect "sabotage $1: said so" grep -qE "$2" "$work/out"
}
sabotage 's/0x1.ccccccp-1f/0x1.cccp-1f/' '^custom_backend: digits DISAGREE .* xor learned'  # momentum
sabotage 's/ tanhf(/ 0 * tanhf(/' '^custom_backend: digits agree .* xor NOT LEARNED'
sabotage '/long k/s/sum += /sum -= /' '^f32 math.dot_general differs'
sabotage 's/^  return a != a .* a > b ? a : b;$/  return a > b ? a : b;/' '^f32 maximum differs'
sabotage 's/(signbit(a) ? b : a)/a/' '^f64 maximum differs'

[ "$failures" -eq 0 ] || exit 1
echo 'custom_backend_test: passed'
