#!/usr/bin/env bash
# Has Z3 judge every file of tests/matcher/proofs: its answers must be those that the file expects, a
# line "(check-sat)  ; expect: unsat" or "sat" each, in order.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/proofs" || exit 2

if ! command -v z3 >/dev/null; then
  echo 'proofs_test: z3 is not installed: run .ci/packages.sh tests' >&2
  exit 1
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# judge FILE: prints what Z3 says; fails where it does not say what FILE expects.
judge() {
  local expected questions answers
  expected=$(sed -nE 's/^\(check-sat\) +; expect: (sat|unsat)$/\1/p' "$1")
  questions=$(grep -c '(check-sat)' "$1")
  z3 -T:300 "$1" >"$work/said" 2>&1
  cat "$work/said"
  answers=$(grep -xE 'sat|unsat|unknown|timeout' "$work/said")
  if [ -z "$expected" ] || [ "$(wc -l <<<"$expected")" -ne "$questions" ]; then
    echo "proofs_test: $1: a (check-sat) without its expectation" >&2
    return 1
  fi
  if grep -q '(error' "$work/said" || [ "$answers" != "$expected" ]; then
    echo "proofs_test: $1: expected the answers: ${expected//$'\n'/ }" >&2
    return 1
  fi
}

failed=0 proved=0 refuted=0
for file in *.smt2; do
  echo "== $file"
  judge "$file" || failed=1
  proved=$((proved + $(grep -c 'expect: unsat$' "$file")))
  refuted=$((refuted + $(grep -c 'expect: sat$' "$file")))
done

# The judge itself: a false claim and a claim without an expectation do not pass.
printf '(assert (= 1 1))\n(check-sat)  ; expect: unsat\n' >"$work/false.smt2"
printf '(assert (= 1 2))\n(check-sat)\n' >"$work/silent.smt2"
printf '(assert (= one 2))\n(check-sat)  ; expect: sat\n' >"$work/broken.smt2"
for claim in false silent broken; do
  if judge "$work/$claim.smt2" >"$work/log" 2>&1; then
    echo "proofs_test: the $claim claim passed" >&2
    failed=1
  fi
done

[ "$failed" -eq 0 ] || exit 1
echo "$proved claims without a counterexample, $refuted with one, as expected"
