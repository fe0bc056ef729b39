#!/usr/bin/env bash
# bench/run.sh [FILTER]: builds the benchmarks for release and prints a table: nanoseconds per node
# of every stage at each size, how the time per node grows from 1e5 to 1e6 nodes (goal: at most 4
# times), and the nodes per second at 1e5 (goal of each match: at least 1,000,000).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

build=build/bench
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DMULGRAD_BENCH=ON -DMULGRAD_TESTS=OFF \
  -DMULGRAD_EXAMPLES=OFF >&2
cmake --build "$build" --target passes_bench >&2

"$build/bench/passes_bench" --benchmark_filter="${1:-.}" --benchmark_min_time=0.2 \
  --benchmark_format=csv 2>/dev/null | awk -F, '
  /^"/ {
    gsub(/"/, "", $1)
    size = $1; sub(/.*\//, "", size)
    stage = $1; sub(/\/[0-9]+$/, "", stage)
    unit = $5 == "ns" ? 1 : $5 == "us" ? 1e3 : $5 == "ms" ? 1e6 : 1e9
    time[stage, size] = $4 * unit / size
    if (!(stage in known)) { known[stage] = 1; stages[++count] = stage }
  }
  END {
    printf "%-30s %9s %9s %9s %9s  %8s  %12s\n", "ns per node", "1e3", "1e4", "1e5", "1e6",
           "1e6/1e5", "nodes/s"
    for (i = 1; i <= count; i++) {
      s = stages[i]
      printf "%-30s %9.1f %9.1f %9.1f %9.1f  %8.2f  %12.0f\n", s, time[s, 1000], time[s, 10000],
             time[s, 100000], time[s, 1000000], time[s, 1000000] / time[s, 100000],
             1e9 / time[s, 100000]
    }
  }'
