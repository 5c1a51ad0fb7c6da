# shellcheck shell=bash
# A step of steps.txt: the essential tests of the Python client (tests/python), with the daemon on rxa. The guest has the
# host's Python, grpcio and pytest.
#
# usage: bash tests/vm/step_python.sh
set -euo pipefail

export RNICD_TEST_DAEMON_FLAGS='--provider=verbs --verbs_devices=rxa'
exec /usr/bin/python3 tests/python/run.py --package "$BUILD/python" --rnicd "$BUILD/daemon/app/rnicd" \
  --rnicctl "$BUILD/client/ctl/rnicctl" -q -m essential --durations=5
