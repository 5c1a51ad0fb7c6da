# shellcheck shell=bash
# A step of steps.txt: Open MPI over the provider for libfabric, between both cards. The guest has the host's Open MPI.
#
# usage: bash tests/vm/step_mpi.sh
set -euo pipefail

# Ranks never sleep. As in a control group of its own, a daemon's threads of low priority then give way to its others
# only, and not to the ranks.
readonly GROUPS_OF_SESSIONS=/proc/sys/kernel/sched_autogroup_enabled
before=$(<"$GROUPS_OF_SESSIONS")
trap 'echo "$before" >"$GROUPS_OF_SESSIONS"' EXIT
echo 1 >"$GROUPS_OF_SESSIONS"
/usr/bin/python3 tests/libfabric/programs/cards_test.py --rnicd "$BUILD/daemon/app/rnicd" \
  --rnicctl "$BUILD/client/ctl/rnicctl" --library "$BUILD/client/c/shared/librnicd.so.0" \
  --library "$BUILD/client/libfabric/librnicd-fi.so"
