#!/usr/bin/env bash
# Builds examples/rust with Debian's rustc and bindgen, which it installs, and runs the program as that of examples/c.
# usage: bash rust_example_test.sh FOLDER_OF_LIBRNICD RNICD RNICCTL
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/../../scripts/lib.sh"

readonly LIBRARY=$1 RNICD=$2 RNICCTL=$3
readonly PROGRAM=$REPO/build/rust/hello

# libclang-dev has the compiler's own headers, which bindgen reads.
install_tools rustc bindgen libclang-dev
# Another rustc may be in front of Debian's.
PATH=/usr/bin:$PATH
mkdir -p "$(dirname "$PROGRAM")"
sh examples/rust/build.sh "$PROGRAM" client/c "$LIBRARY"
LD_LIBRARY_PATH=$LIBRARY /usr/bin/python3 tests/examples/python_example_test.py --source . --rnicd "$RNICD" \
  --rnicctl "$RNICCTL" --hello "$PROGRAM" Hello
