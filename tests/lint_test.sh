#!/usr/bin/env bash
# Each kind of fault that tests/lint.sh looks for is planted alone and must be named with its place.
set -euo pipefail
source_root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

# A small tree without a fault.
fresh() {
  find "$tree" -mindepth 1 -delete
  mkdir -p "$tree"/{core,autodiff,lowering,backends/cpu,examples,tests/core,bench}
  cp "$source_root/.clang-format" "$tree"
  printf '#pragma once\n' | tee "$tree"/{core/a,core/b,autodiff/c,lowering/d,backends/e}.h >/dev/null
  printf '#include <cblas.h>\n\n#include <Eigen/Core>\n\n#include "core/a.h"\n' >"$tree/backends/cpu/f.cc"
  printf '#include "backends/e.h"\n#include "core/a.h"\n' |
    tee "$tree/examples/g.cc" "$tree/tests/core/g_test.cc" "$tree/bench/g_bench.cc" >/dev/null
  printf '#include <cblas.h>\n' >"$tree/bench/i.cc"
  printf 'See https://example.org/%s/x.\n' home >"$tree/README.md"
}

# expect_clean <case>
expect_clean() {
  local output
  if ! output=$("$source_root/tests/lint.sh" "$tree" 2>&1); then
    printf 'FAIL %s: expected no fault, got\n%s\n' "$1" "$output"
    failures=$((failures + 1))
  fi
}

# expect_fault <case> <regular expression>: exactly one fault, and it matches.
expect_fault() {
  local output
  if output=$("$source_root/tests/lint.sh" "$tree" 2>/dev/null) ||
    [ "$(wc -l <<<"$output")" -ne 1 ] || ! grep -qE "$2" <<<"$output"; then
    printf 'FAIL %s: expected one fault like %s, got\n%s\n' "$1" "$2" "$output"
    failures=$((failures + 1))
  fi
}

# fault <case> <file> <text> <regular expression>: a fresh tree with that file.
fault() {
  fresh
  mkdir -p "$(dirname "$tree/$2")"
  printf '%b' "$3" >"$tree/$2"
  expect_fault "$1" "$4"
}

fresh
expect_clean 'clean tree'

mkdir "$tree/build"
printf 'int  x;' >"$tree/build/x.cc"
expect_clean 'build/ is ignored'

fault 'core includes autodiff' core/x.h '#include "autodiff/c.h"\n' '^core/x.h:1: upward include of "autodiff/c.h"'
fault 'autodiff includes lowering' autodiff/x.cc '#include "lowering/d.h"\n' '^autodiff/x.cc:1: upward'
fault 'lowering includes backends' lowering/x.cc '#include "backends/e.h"\n' '^lowering/x.cc:1: upward'
fault 'lowering includes examples' lowering/x.cc '#include "examples/h.h"\n' '^lowering/x.cc:1: upward'
fault 'examples include tests' examples/x.cc '#include "tests/h.h"\n' '^examples/x.cc:1: upward'
fault 'upward include in an op list' core/x.def '\n# include "lowering/d.h"\n' '^core/x.def:2: upward'
fault 'include beside the file' core/x.cc '#include "a.h"\n' '^core/x.cc:1: "a.h" is not relative'
fault 'include through the parent' core/x.cc '#include "../core/a.h"\n' '^core/x.cc:1: .* not relative'
fault 'include of ours in <>' autodiff/x.cc '#include <core/a.h>\n' '^autodiff/x.cc:1: <core/a.h> is ours'
fault 'Eigen in a header' backends/cpu/x.h '#include <Eigen/Dense>\n' '^backends/cpu/x.h:1: <Eigen/Dense> belongs'
fault 'Eigen in a test' tests/core/x_test.cc '#include <Eigen/Dense>\n' '^tests/core/x_test.cc:1: <Eigen'
fault 'cblas outside the cpu backend' backends/x.cc '#include <cblas.h>\n' '^backends/x.cc:1: <cblas.h> belongs'
fault 'Eigen in a benchmark' bench/x.cc '#include <Eigen/Dense>\n' '^bench/x.cc:1: <Eigen'
fault 'self-include' core/x.h '#include "core/x.h"\n' '^core/x.h:1: includes itself'
fault 'machine path' .ci/x.sh "cd /ro""ot/y\n" '^.ci/x.sh:1: path of one machine: /ro[o]t/y$'
fault 'machine path in quotes' core/x.cc 'auto* p = "/wo''rk/z";\n' '^core/x.cc:1: path of one machine: /wor[k]/z$'
fault 'file in the root' notes.md 'x\n' '^notes.md: does not belong in the root'
fault 'folder in the root' cmake/x.cmake 'x\n' '^cmake/x.cmake: does not belong in the root'
fault 'long source' core/x.def "$(printf '//\\n%.0s' {1..801})" '^core/x.def: 801 lines, more than 800'
fault 'long page' core/README.md "$(printf 'x\\n%.0s' {1..801})" '^core/README.md: 801 lines'

fresh
printf '#include "core/b.h"\n' >"$tree/core/a.h"
printf '#include "core/x.h"\n' >"$tree/core/b.h"
printf '#include "core/a.h"\n' >"$tree/core/x.h"
expect_fault 'include cycle' '^core/[abx].h: include cycle: core/[abx].h <-> core/[abx].h <-> core/[abx].h$'

if command -v clang-format-14 >/dev/null; then
  fault 'format' core/x.cc 'int  x;\n' '^core/x.cc:1: format'
fi

[ "$failures" -eq 0 ] || exit 1
echo 'lint_test: all faults found'
