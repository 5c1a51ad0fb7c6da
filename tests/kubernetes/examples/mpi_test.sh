#!/usr/bin/env bash
# Runs mpi_test.py with programs of Debian, which it installs.
# usage: bash mpi_test.sh ARGUMENT-OF-MPI_TEST...
set -euo pipefail
# shellcheck source=scripts/lib.sh
source "$(dirname "$0")/../../../scripts/lib.sh"

install_tools bubblewrap openmpi-bin python3-mpi4py python3-yaml
/usr/bin/python3 tests/kubernetes/examples/mpi_test.py "$@"
