#!/usr/bin/env bash
# tests/lint.sh [ROOT]: what a compiler does not check. One line per fault: file[:line]: what is wrong.
# Looks at the files that git knows or would add; outside a work tree at all but build/.
set -uo pipefail
export LC_ALL=C
cd "${1:-$(dirname "${BASH_SOURCE[0]}")/..}" || exit 2

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
faults=$work/faults
: >"$faults"

if [ -e .git ] && git ls-files >/dev/null 2>&1; then
  mapfile -d '' -t listed < <(git ls-files -z --cached --others --exclude-standard)
else
  mapfile -d '' -t listed < <(find . -path ./.git -prune -o -path ./build -prune -o -type f -printf '%P\0')
fi
files=() code=() counted=()
for file in "${listed[@]}"; do
  [ -f "$file" ] || continue  # deleted, not yet committed
  files+=("$file")
  case $file in *.h | *.cc) code+=("$file") ;; esac
  case $file in
    *.h | *.cc | *.cu | *.def | *.cmake | *.sh | *.md | *CMakeLists.txt | .ci/run) counted+=("$file") ;;
  esac
done

# The root holds what the design names and nothing else.
for file in "${files[@]}"; do
  case $file in
    .* | core/* | autodiff/* | lowering/* | backends/* | examples/* | tests/* | bench/*) ;;
    CMakeLists.txt | CMakePresets.json | README.md | CONTRIBUTING.md | LICENSE) ;;
    *) echo "$file: does not belong in the root" >>"$faults" ;;
  esac
done

# No long files.
for file in "${counted[@]}"; do
  lines=$(wc -l <"$file")
  [ "$lines" -le 800 ] || echo "$file: $lines lines, more than 800" >>"$faults"
done

# No paths of one machine.
[ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" | xargs -0 grep -nHIoE \
  '(^|[^A-Za-z0-9_.~})-])/(work|root|farm|home|Users)/[A-Za-z0-9_.+-]*' -- |
  sed -E 's,^([^:]+:[0-9]+):[^/]*(.*),\1: path of one machine: \2,' >>"$faults"

# Includes: core <- autodiff <- lowering <- backends <- examples; tests and bench see all; Eigen and
# BLAS in backends/cpu/*.cc alone, and BLAS in bench/*.cc, which measures by it. Writes the edges of
# the include graph for the check after this one.
: >"$work/edges"
mapfile -t included < <(printf '%s\n' "${counted[@]}" | grep -E '\.(h|cc|cu|def)$')
[ ${#included[@]} -eq 0 ] || awk -v edges="$work/edges" '
  BEGIN {
    n = split("core autodiff lowering backends examples", order, " ")
    for (i = 1; i <= n; i++) level[order[i]] = i
    level["tests"] = level["bench"] = n + 1
  }
  function folder(path) { sub(/\/.*/, "", path); return path }
  function fault(text) { print FILENAME ":" FNR ": " text }
  /^[ \t]*#[ \t]*include[ \t]*[<"]/ {
    quoted = match($0, /"[^"]+"/)
    if (!quoted && !match($0, /<[^>]+>/)) next
    path = substr($0, RSTART + 1, RLENGTH - 2)
    if (path ~ /^(unsupported\/)?Eigen\// || path ~ /(^|\/)(cblas|f77blas|openblas_config|lapacke)\.h$/)
      if (FILENAME !~ /^backends\/cpu\/.*\.cc$/ && !(FILENAME ~ /^bench\/.*\.cc$/ && path !~ /Eigen/))
        fault("<" path "> belongs in backends/cpu/*.cc alone")
    from = level[folder(FILENAME)]
    to = level[folder(path)]
    if (!quoted) {
      if (to && path ~ /\//) fault("<" path "> is ours: write \"" path "\"")
    } else if (!to || path ~ /\/\.\.?\//) {
      fault("\"" path "\" is not relative to the root (others\x27 headers stand in <>)")
    } else {
      if (to > from) fault("upward include of \"" path "\"")
      if (path == FILENAME) fault("includes itself")
      else print FILENAME, path > edges
    }
  }' "${included[@]}" >>"$faults"

# No include cycle.
tsort "$work/edges" 2>&1 >/dev/null | sed -n 's/^tsort: //p' | awk '
  /input contains a loop:$/ { if (cycle) print cycle; cycle = ""; next }
  { cycle = cycle ? cycle " <-> " $0 : "include cycle: " $0 }
  END { if (cycle) print cycle }' | sed -E 's/^include cycle: ([^ ]+)/\1: include cycle: \1/' >>"$faults"

# Format.
if ! command -v clang-format-14 >/dev/null; then
  echo 'lint: clang-format-14 is not installed, format not checked' >&2
elif [ ${#code[@]} -gt 0 ]; then
  printf '%s\0' "${code[@]}" | xargs -0 -n 8 -P "$(nproc)" clang-format-14 --dry-run -Werror 2>&1 |
    sed -nE 's/^([^ ]+):([0-9]+):[0-9]+: error: .*/\1:\2: format (clang-format-14 -i)/p' | uniq >>"$faults"
fi

if [ -s "$faults" ]; then
  sort -V "$faults"
  echo "lint: $(wc -l <"$faults") fault(s)" >&2
  exit 1
fi
echo "lint: ${#files[@]} files, no fault"
