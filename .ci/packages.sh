#!/usr/bin/env bash
# .ci/packages.sh [tests] [clang] [lint]: installs what is missing to build mulgrad on Debian 12.
# Without arguments: the library and the examples. Does nothing, and needs no root, when all is there.
set -euo pipefail

packages=(g++ cmake ninja-build pkg-config libeigen3-dev libopenblas-dev libhwy-dev
          libspdlog-dev libcli11-dev nlohmann-json3-dev)
for group in "$@"; do
  case $group in
    tests) packages+=(libgtest-dev libgmock-dev libbenchmark-dev z3) ;;
    clang) packages+=(clang-14 libclang-rt-14-dev) ;;
    lint) packages+=(clang-14 clang-format-14) ;;
    *) echo "packages.sh: unknown group '$group' (tests, clang, lint)" >&2; exit 2 ;;
  esac
done

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f='${Status}' "$package" 2>/dev/null || true)
  [ "$status" = 'install ok installed' ] || missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "packages.sh: root or sudo needed for: ${missing[*]}" >&2; exit 1; }
  as_root=(sudo)
fi
echo "Installing ${missing[*]}" >&2
"${as_root[@]}" apt-get update -q >&2
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive \
  apt-get install -q -y --no-install-recommends "${missing[@]}" >&2
