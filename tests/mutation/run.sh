#!/usr/bin/env bash
# tests/mutation/run.sh [--sample=N] [--seed=S] [--list]: does a test fail for every small mistake in
# the two mean expansions?
#   --list      prints the mutants and runs nothing
#   --sample=N  runs N of them, chosen by the seed (default 1)
# The mutants stand in mutants.txt, written by generate.py; equivalent.txt names those that no test
# can kill, and why. A mutant is compiled from a copy of its source into a shared library that the
# matcher's tests, linked once, load. So it needs the tests of the preset dev, built. Only there:
# under sanitizers every mutant would cost many times as much and show the same.
# Exit status: 0 if each mutant was killed, does not compile, or is named equivalent.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C
ulimit -c 0

build=build/dev
list=tests/mutation/mutants.txt
sources=(lowering/expand_mean.cc lowering/expand_mean_derivative.cc)
tests=(lowering_expand_mean_test lowering_expand_mean_derivative_test matcher_cases_test
       matcher_random_programs_test)

sample=0 seed=1
for argument in "$@"; do
  case $argument in
    --list) cut -f 1,4,5 "$list"; exit ;;
    --sample=*) sample=${argument#*=} ;;
    --seed=*) seed=${argument#*=} ;;
    *) echo "mutation: unknown argument '$argument'" >&2; exit 2 ;;
  esac
done

fail() { echo "mutation: $1" >&2; exit 2; }
objects=()
for test in "${tests[@]}"; do
  object=$(echo $build/tests/CMakeFiles/"$test".dir/*/*_test.cc.o)
  [ -f "$object" ] || fail "$build holds no tests: cmake --preset dev && cmake --build --preset dev"
  objects+=("$PWD/$object")
done

declare -A texts=()
for source in "${sources[@]}"; do texts[$source]=$(<"$source"); done
# Splits an entry of the list. Not by `read` with IFS: it takes neighbouring tabs, an empty field, for
# one.
take() {
  mapfile -t -d $'\t' field <<<"$1"$'\t'
  name=${field[0]} file=${field[1]} offset=${field[2]} text=${texts[$file]}
  old=${field[3]//\\n/$'\n'} new=${field[4]//\\n/$'\n'}
}
while IFS= read -r entry; do
  take "$entry"
  [ "${text:offset:${#old}}" = "$old" ] || fail "$list is older than $file: run generate.py"
done <"$list"

declare -A equivalent=()
while IFS=$'\t' read -r name reason; do
  [ -n "$reason" ] || fail "equivalent.txt: no reason for $name"
  grep -qF "$name"$'\t' "$list" || fail "equivalent.txt: no mutant is called $name"
  equivalent[$name]=$reason
done <tests/mutation/equivalent.txt

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The compiler, and how the build calls it for these sources.
flags=$(grep -B 2 "\"file\": .*/${sources[0]}\"" $build/compile_commands.json |
  sed -nE 's/.*"command": "([^"]*)".*/\1/p' | sed -E 's/ -o .*//; s/.*ccache //')
[ -n "$flags" ] || fail "$build/compile_commands.json does not say how to compile ${sources[0]}"
read -ra compile <<<"$flags -g0 -w"

# The headers of both sources, read once.
cat "${sources[@]}" | grep '^#include' | sort -u >"$work/headers.h"
"${compile[@]}" -x c++-header "$work/headers.h" -o "$work/headers.h.gch"

compile_source() { "${compile[@]}" -include "$work/headers.h" -c "$1" -o "$2"; }
share() { "${compile[0]}" -shared -o "$work/libmutant.so" "$@"; }
original=()
for source in "${sources[@]}"; do
  original+=("$work/$(basename "$source" .cc).original.o")
  compile_source "$source" "${original[-1]}"
done
share "${original[@]}"

# The tests as one program: the link line of one of them, with the objects of all and the library.
line=$(ninja -C $build -t commands "${tests[0]}" | tail -1)
libraries=${line##* -o tests/${tests[0]} }
read -ra libraries <<<"${libraries%% &&*}"
(cd $build && "${compile[0]}" -rdynamic -o "$work/tests" "${objects[@]}" "$work/libmutant.so" \
  "-Wl,-rpath,$work" "${libraries[@]}")

# Fills `killer` with the first test that fails. A million nodes kill no mutant that fewer do not.
killer=
survives() {
  local status=0
  MULGRAD_RANDOM_PROGRAMS=1000 timeout 120 "$work/tests" --gtest_fail_fast --gtest_brief=0 \
    '--gtest_filter=-*MillionNodes*' >"$work/log" 2>&1 || status=$?
  [ $status -ne 0 ] || return 0
  killer=$(sed -nE 's/^\[  FAILED  \] ([^ ]+) \(.*/\1/p' "$work/log" | head -1)
  [ -n "$killer" ] || killer="$(sed -nE 's/^\[ RUN      \] ([^ ]+).*/\1/p' "$work/log" | tail -1) (aborts)"
  [ $status -ne 124 ] || killer=${killer/aborts/never ends}
  return 1
}
survives || { tail -30 "$work/log"; fail "$killer fails without any mutant"; }

chosen=$(cat "$list")
if [ "$sample" -gt 0 ]; then
  chosen=$(awk -v seed="$seed" 'BEGIN { srand(seed) } { print rand() "\t" $0 }' "$list" |
    sort -g | head -n "$sample" | cut -f 2-)
fi

killed=0 uncompiled=0 named=0 faults=0 total=0
while IFS= read -r entry; do
  take "$entry"
  printf '%s\n' "${text:0:offset}$new${text:offset+${#old}}" >"$work/$(basename "$file")"
  mutant=()
  for source in "${original[@]}"; do
    [ "$(basename "$source" .original.o).cc" = "$(basename "$file")" ] || mutant+=("$source")
  done
  total=$((total + 1))
  if ! compile_source "$work/$(basename "$file")" "$work/mutant.o" 2>"$work/log"; then
    uncompiled=$((uncompiled + 1))
    verdict='does not compile'
  elif share "$work/mutant.o" "${mutant[@]}" && ! survives 2>"$work/shell"; then
    killed=$((killed + 1))
    verdict="killed by $killer"
    if [ -n "${equivalent[$name]:-}" ]; then
      faults=$((faults + 1))
      verdict+=', but equivalent.txt names it'
    fi
  elif [ -n "${equivalent[$name]:-}" ]; then
    named=$((named + 1))
    verdict="equivalent: ${equivalent[$name]}"
  else
    faults=$((faults + 1))
    verdict="SURVIVED: '${field[3]}' became '${field[4]}'"
  fi
  printf '%-64s %s\n' "$name" "$verdict"
done <<<"$chosen"

echo "$total mutants: $killed killed, $uncompiled do not compile, $named equivalent, $faults faults"
[ $faults -eq 0 ]
