#!/usr/bin/env bash
# bench/run.sh [--json FILE] [FILTER]: builds for release and prints tables: training steps beside
# hand-written ones, JAX and PyTorch; kernels; the time per node of every stage of a program; what
# compiling takes. FILTER is a regular expression for the names of rows. FILE gets the times of the
# steps as a JSON list. $PYTHON (default python3) measures JAX and PyTorch where it can import them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { echo "bench/run.sh: $*" >&2; exit 2; }
json='' filter=.
while [ $# -gt 0 ]; do
  case $1 in
    --json) [ $# -ge 2 ] || fail '--json needs a file'; json=$(realpath -m "$2"); shift ;;
    --json=*) json=$(realpath -m "${1#--json=}") ;;
    -*) fail "unknown option $1" ;;
    *) filter=$1 ;;
  esac
  shift
done

build=build/bench
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULGRAD_BENCH=ON -DMULGRAD_TESTS=OFF \
  -DMULGRAD_EXAMPLES=OFF >&2
cmake --build "$build" >&2
bin=$build/bench
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Training steps.
[ -x "$bin/step_bench" ] || fail 'OpenBLAS was not found, so there is no floor to measure steps by'
python=${PYTHON:-python3}
cores=$(nproc)
options=()
for peer in jax torch; do
  if ! "$python" -c "import $peer" 2>/dev/null; then
    echo "$python cannot import $peer: not measured" >&2
    continue
  fi
  for threads in $(seq 1 $((cores < 2 ? cores : 2))); do
    "$python" "bench/${peer}_step.py" "$threads" "$filter" >>"$work/$peer"
  done
  options+=("--$peer=$work/$peer")
done
[ -z "$json" ] || options+=("--json=$json")
"$bin/step_bench" --filter="$filter" "${options[@]}"

# micro NAME: the CSV lines of a benchmark, none where the filter leaves none.
micro() {
  if [ -n "$("$bin/$1" --benchmark_filter="$filter" --benchmark_list_tests 2>/dev/null)" ]; then
    "$bin/$1" --benchmark_filter="$filter" --benchmark_min_time=0.2 --benchmark_format=csv \
      2>"$work/messages" >"$work/$1.csv" || { cat "$work/messages" >&2; return 1; }
    if grep -q ',true,' "$work/$1.csv"; then cat "$work/$1.csv" >&2; return 1; fi
    grep '^"' "$work/$1.csv" | tr -d '"'
  fi
}

# Kernels beside calls of BLAS and loops written by hand.
micro kernels_bench >"$work/kernels"
micro fused_bench >>"$work/kernels"
[ ! -s "$work/kernels" ] || awk -F, '
  NR == 1 { printf "\n%-42s %10s %10s %8s\n", "kernels, ns", "ours", "by hand", "/hand" }
  { printf "%-42s %10.0f %10.0f %8.2f\n", substr($1, 1, index($1, "/iterations") - 1), $12, $11, $13 }
  ' "$work/kernels"

# Nanoseconds per node of every stage at each size, how the time per node grows from 1e5 to 1e6
# nodes, and the nodes per second at 1e5.
micro passes_bench >"$work/passes"
[ ! -s "$work/passes" ] || awk -F, '
  {
    size = $1; sub(/.*\//, "", size)
    stage = $1; sub(/\/[0-9]+$/, "", stage)
    time[stage, size] = 1e9 / $7  # items, which are nodes, a second
    if (!(stage in known)) { known[stage] = 1; stages[++count] = stage }
  }
  END {
    printf "\n%-30s %9s %9s %9s %9s  %8s  %12s\n", "passes, ns per node", "1e3", "1e4", "1e5", "1e6",
           "1e6/1e5", "nodes/s"
    for (i = 1; i <= count; i++) {
      s = stages[i]
      printf "%-30s", s
      for (size = 1000; size <= 1000000; size *= 10) {
        printf (s, size) in time ? " %9.1f" : " %9s", (s, size) in time ? time[s, size] : "-"
      }
      mid = time[s, 100000]; last = time[s, 1000000]
      if (mid && last) printf "  %8.2f", last / mid; else printf "  %8s", "-"
      if (mid) printf "  %12.0f\n", 1e9 / mid; else printf "  %12s\n", "-"
    }
  }' "$work/passes"

# Milliseconds from a model to the plan of its step, by stage.
micro compile_bench >"$work/compile"
[ ! -s "$work/compile" ] || awk -F, '
  {
    unit = $5 == "ns" ? 1e-6 : $5 == "us" ? 1e-3 : $5 == "ms" ? 1 : 1e3
    if (NR == 1) printf "\n%-58s %9s\n", "compiling a step", "ms"
    printf "%-58s %9.2f\n", $1, $4 * unit
  }' "$work/compile"

# The trainer of the README, compiled by itself.
if [[ 'trainer source' =~ $filter ]]; then
  awk '/^```cpp$/ { inside = 1; next } /^```$/ && inside { exit } inside' README.md >"$work/trainer.cc"
  includes=()
  for folder in core autodiff lowering backends; do includes+=(-I "$build/include/$folder"); done
  best=
  for _ in 1 2 3; do
    start=${EPOCHREALTIME/[.,]/}
    CCACHE_DISABLE=1 g++ -std=c++20 -O2 "${includes[@]}" -c "$work/trainer.cc" -o "$work/trainer.o"
    took=$((${EPOCHREALTIME/[.,]/} - start))
    [ -n "$best" ] && [ "$best" -le "$took" ] || best=$took
  done
  printf '\n%-58s %9d\n' 'compiling the trainer source of the README (g++ -O2)    ms' $((best / 1000))
fi
