#!/usr/bin/env bash
# The mulgrad command: what each call prints and how it exits. Of a case that succeeds, standard
# output is mulgrad/<case>.out and standard error mulgrad/<case>.err, or empty without such a file.
# MULGRAD_UPDATE_GOLDENS=1 in the environment writes these files anew.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/mulgrad" || exit 1
mulgrad=$MULGRAD_BIN_DIR/mulgrad
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
declare -A cases

fail() {
  echo "FAIL $1"
  failures=$((failures + 1))
}

# holds <case> <stream>: it is what the golden says.
holds() {
  local golden=$1.$2
  if [ -n "${MULGRAD_UPDATE_GOLDENS:-}" ]; then
    rm -f "$golden"
    [ ! -s "$work/$2" ] || cp "$work/$2" "$golden"
  elif [ -e "$golden" ]; then
    diff -u "$golden" "$work/$2" || fail "$1: standard $2"
  elif [ -s "$work/$2" ]; then
    cat "$work/$2"
    fail "$1: standard $2 is not empty"
  fi
}

# run <exit code> <arguments>: standard input is passed on.
run() {
  local code=$1 found
  shift
  call="mulgrad $*"
  "$mulgrad" "$@" >"$work/out" 2>"$work/err"
  found=$?
  [ "$found" -eq "$code" ] || fail "$call: exit code $found, expected $code"
}

# check <case> <exit code> <arguments>
check() {
  local name=$1
  shift
  cases[$name]=1
  run "$@"
  holds "$name" out
  holds "$name" err
}

# refuses <line> <arguments>: exit code 1, nothing printed, and just this line on standard error.
refuses() {
  local line=$1
  shift
  run 1 "$@"
  [ ! -s "$work/out" ] || fail "$call: printed before it failed"
  diff -u <(printf '%s\n' "$line") "$work/err" || fail "$call: standard error"
}

# misused <text> <arguments>: exit code 2, nothing printed, the text in what standard error says.
misused() {
  local text=$1
  shift
  run 2 "$@"
  [ ! -s "$work/out" ] || fail "$call: printed before it failed"
  grep -qF -- "$text" "$work/err" || { cat "$work/err"; fail "$call: expected: $text"; }
}

# says <text>: a line of the last standard error, exactly.
says() { grep -qxF -- "$1" "$work/err" || fail "$call: expected the line: $1"; }
# prints <text>: somewhere in the last standard output.
prints() { grep -qF -- "$1" "$work/out" || fail "$call: expected in the output: $1"; }

# print
check print 0 print loss.mlir
cp "$work/out" "$work/printed.mlir"
"$mulgrad" print "$work/printed.mlir" | cmp - "$work/printed.mlir" || fail 'print: not a fixed point'
check print_stdin 0 print - <loss.mlir
cmp -s "$work/out" "$work/printed.mlir" || fail 'print -: differs from print FILE'
check print_symbolic 0 print symbolic.mlir
refuses "broken.mlir:4:27: parse_error: found '%x', expected ':'" print broken.mlir
refuses "<stdin>:4:27: parse_error: found '%x', expected ':'" print - <broken.mlir
refuses 'mismatched.mlir:4:10: broadcast_shape_mismatch: %1 stablehlo.add: Elementwise E5: found sizes 4 and 3 at axis 0 of [4] and [3], expected equal sizes or a size of 1' \
  print mismatched.mlir
refuses 'missing.mlir: io_error: cannot read the file' print missing.mlir
refuses '.: io_error: cannot read the file' print .
refuses "<stdin>:1:1: parse_error: found the end of the text, expected 'func.func'" print - </dev/null

# opt
check opt_list 0 opt --list
check opt_mean 0 opt loss.mlir --passes=expand_mean --explain
says '%2 mean: rewritten by expand_mean'
check opt_order 0 opt loss.mlir --passes=expand_mean,legalize_to_matmul,dead_code
check opt_near_misses 0 opt near_misses.mlir --passes=expand_mean_derivative --explain
says '%2 divide: rewritten by expand_mean_derivative'
says '%4 divide: clause 5: d = 16.0, r*c = 15'
says '%6 divide: clause 4: g has type tensor<1x5xf64>, expected tensor<1x1xf64>'
says '%8 divide: clause 1: operand 0: found the literal 1.5e+01, expected a value'
says '%10 divide: clause 7: b has 2 uses, expected one'
says '%12 broadcast_in_dim: clause 1: no divide reads it'
[ "$(wc -l <"$work/err")" -eq 7 ] || fail 'opt_near_misses: expected a line per divide and loose broadcast'
# The nodes have the numbers of the file, whatever ran before.
check opt_explain_later 0 opt near_misses.mlir --passes=dead_code,expand_mean_derivative --explain
says '%4 divide: clause 5: d = 16.0, r*c = 15'
check opt_silent 0 opt near_misses.mlir --passes=expand_mean_derivative
offenders="%1 mulgrad.mean: clause 3: unsupported_reduction: found a partial reduction over axes [1], expected axes [0, 1]; %2 mulgrad.mean: clause 5: dtype_not_differentiable: found dtype bf16, expected f32 or f64"
refuses "means.mlir:4:13: unsupported_reduction: %1 mulgrad.mean: expand_mean does not apply: $offenders" \
  opt means.mlir --passes=dead_code,expand_mean
run 1 opt means.mlir --passes=expand_mean --explain
says '%0 mean: every clause holds, but not for every mean of the program'
says '%2 mean: clause 5: dtype_not_differentiable: found dtype bf16, expected f32 or f64'
# The place is that of the file also where another pass has moved the node.
refuses 'means_behind_others.mlir:4:13: unsupported_reduction: %1 mulgrad.mean: expand_mean does not apply: '"${offenders%%;*}" \
  opt means_behind_others.mlir --passes=dead_code,expand_mean
check opt_target 0 opt symbolic.mlir --passes=legalize_to_matmul --target=cpu --bind=B=3
check opt_bind 0 opt symbolic.mlir --bind=B=3 --passes=expand_mean
prints 'tensor<3x5xf32>'
refuses 'symbolic.mlir:4:10: unresolved_symbolic_shape: %1 mulgrad.mean: expand_mean does not apply: %1 mulgrad.mean: clause 4: unresolved_symbolic_shape: found sizes [[B], 5], expected static sizes: bind the program first' \
  opt symbolic.mlir --passes=expand_mean
refuses 'symbolic.mlir: invalid_argument: the symbol B has no binding' \
  opt symbolic.mlir --passes=expand_mean --bind=C=3

# grad
check grad 0 grad loss.mlir --wrt=2,0
check grad_all 0 grad loss.mlir
check grad_split 0 grad loss.mlir --wrt=0 --split
check grad_bind 0 grad symbolic.mlir --bind=B=4
check grad_second 0 grad - --wrt=0 < <("$mulgrad" grad loss.mlir --wrt=0)
refuses 'loss.mlir: dtype_not_differentiable: %arg1 "arg1": found dtype i32, expected a float dtype' \
  grad loss.mlir --wrt=1
refuses 'loss.mlir: invalid_argument: found input 3 to derive with respect to in a program of 3 inputs' \
  grad loss.mlir --wrt=3
refuses 'loss.mlir: invalid_argument: found input -1 to derive with respect to in a program of 3 inputs' \
  grad loss.mlir --wrt=-1
refuses 'symbolic.mlir:4:10: unresolved_symbolic_shape: %1 mulgrad.mean: found the symbolic size [5*B] where a number is needed; bind it first' \
  grad symbolic.mlir --wrt=0

# coverage
check coverage 0 coverage loss.mlir --target=matmul_only
check coverage_grad 0 coverage loss.mlir --grad --target=matmul_move
check coverage_cpu 0 coverage integers.mlir --target=cpu
check coverage_unsupported 3 coverage integers.mlir --target=matmul_only
prints 'forward:%0 stablehlo.add: found an operand of dtype i32, expected one of f32, f64'
check coverage_json 3 coverage integers.mlir --target=matmul_only --json
check coverage_derivative 0 coverage near_misses.mlir --target=matmul_only
prints 'expand_mean_derivative'
check coverage_bind 0 coverage symbolic.mlir --grad --target=matmul_only --bind=B=32
refuses 'symbolic.mlir: unresolved_symbolic_shape: found the symbolic size [5*B] where a number is needed; bind it first' \
  coverage symbolic.mlir --target=matmul_only
check coverage_batched 0 coverage batched.mlir --target=matmul_batched
check coverage_blocks 0 coverage batched.mlir --target=matmul_only
prints ', 6 times the work'
run 0 coverage batched.mlir --target=matmul_only --json
prints '"work_factor": 6'
# A device that a file describes: each node that needs an exponential is named.
check coverage_described 3 coverage softmax.mlir --grad --target=../../../examples/targets/no_exponential.json
[ "$(grep -c '^  forward:%4 stablehlo.exponential: the target no_exponential' "$work/out")" -eq 1 ] ||
  fail 'coverage_described: the exponential is not named'
refuses 'broken_target.json:4:30: invalid_target: found the op "exp", expected the name of one as programs spell it, less its dialect: "exponential"' \
  coverage softmax.mlir --target=broken_target.json
refuses 'missing.json: io_error: cannot read the file' coverage softmax.mlir --target=missing.json

# The command line alone is wrong; that is seen before the file is looked at.
misused 'command'
misused 'optimise' optimise loss.mlir
misused 'FILE' print
misused 'means.mlir' print loss.mlir means.mlir
misused '--passes=dead_code' print loss.mlir --passes=dead_code
misused "'live_code', expected passes that" opt loss.mlir --passes=dead_code,live_code
misused "'live_code'" opt missing.mlir --passes=live_code
misused '--passes' opt loss.mlir
misused 'FILE' opt --passes=dead_code
misused "'abacus', expected one of matmul_only, matmul_move, matmul_batched, cpu, or the path of a .json file" coverage loss.mlir --target=abacus
misused '--target' coverage loss.mlir
misused 'x' grad loss.mlir --wrt=x
misused "'B', expected NAME=SIZE" opt symbolic.mlir --passes=dead_code --bind=B
misused "'B=3x', expected NAME=SIZE" opt symbolic.mlir --passes=dead_code --bind=B=3x
misused "'B' twice" opt symbolic.mlir --passes=dead_code --bind=B=3,B=4
run 0 --help
for command in print opt grad coverage; do prints "  $command "; done

if [ -e /dev/full ]; then
  "$mulgrad" print loss.mlir >/dev/full 2>"$work/err"
  [ $? -eq 1 ] || fail 'a full device: exit code'
  says '<stdout>: io_error: cannot write'
fi

# What the README shows: each call succeeds and prints the lines below it.
shown=0
while IFS= read -r line; do
  if [[ $line == '    $ mulgrad '* ]]; then
    (cd ../../.. && eval "$(sed 's/^    \$ mulgrad/"$mulgrad"/' <<<"$line")") >"$work/all" 2>&1 || fail "README: $line"
    shown=$((shown + 1))
  elif [[ $line == '    '* && $shown -gt 0 ]]; then
    grep -qxF -- "${line#    }" "$work/all" || fail "README, not printed: $line"
  fi
done < <(awk '/^## / { on = ($0 == "## The command") } on' ../../../README.md)
[ "$shown" -ge 3 ] || fail 'README: no calls found'

for golden in *.out *.err; do
  [ -n "${cases[${golden%.*}]:-}" ] || fail "$golden belongs to no case"
done
[ "$failures" -eq 0 ] || { echo "mulgrad_test: $failures failure(s)"; exit 1; }
echo 'mulgrad_test: passed'
