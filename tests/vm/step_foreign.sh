# shellcheck shell=bash
# A step of steps.txt: programs of Debian that use rdma_cm meet the Python client, with the daemon on rxa
# (tests/vm/foreign). The guest has the host's rdmacm-utils, perftest and Python.
#
# usage: bash tests/vm/step_foreign.sh [CARD TEST...]
#   CARD  instead of rxa; only these TESTs (of pytest) are run
set -euo pipefail

export RNICD_TEST_CARD=${1:-rxa}
export RNICD_TEST_DAEMON_FLAGS="--provider=verbs --verbs_devices=$RNICD_TEST_CARD"
tests=("${@:2}")
exec /usr/bin/python3 tests/python/run.py --package "$BUILD/python" --rnicd "$BUILD/daemon/app/rnicd" \
  --rnicctl "$BUILD/client/ctl/rnicctl" -q --rootdir=tests/vm/foreign --durations=5 "${tests[@]-tests/vm/foreign}"
