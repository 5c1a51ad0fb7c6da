#!/usr/bin/env bash
# Runs night_test.py with programs of Debian, which it installs.
# usage: bash night_test.sh ARGUMENT-OF-NIGHT_TEST...
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/../../../scripts/lib.sh"

install_tools hpcc iproute2 python3-mpi4py lammps
/usr/bin/python3 tests/libfabric/programs/night_test.py "$@"
