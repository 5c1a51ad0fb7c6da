# shellcheck shell=bash
# For steps of steps.txt: runs a suite of the host against the cards, without the tests that cannot run on a card
# (not_on_verbs.txt).
#
# With MODULE=1 the kernel module is loaded meanwhile, and makes the fast registrations.
#
# usage: bash tests/vm/suite.sh PROGRAM [FILTER]
#   PROGRAM  below $BUILD
#   FILTER   of the tests' names, as for --gtest_filter; default: all
# LEFT_OUT holds patterns of tests that are not run; NAME that of the file with the results, if not the program's; CARDS
# the daemons' cards, if not rxa,rxb.
set -euo pipefail

name=${NAME:-$(basename "$1")}
flags=--verbs_devices=${CARDS:-rxa,rxb}
if [[ -n ${MODULE:-} ]]; then
  name+=_module
  flags+=' --verbs_fast_engine=kernel'
  export RNICD_TEST_MODE=module
  insmod "${MODULES:?}/rnicd_fr/rnicd_fr.ko"
  trap 'rmmod rnicd_fr' EXIT
fi
left_out=$(sed 's/#.*//; s/ *|.*//; /^\s*$/d' tests/vm/not_on_verbs.txt | paste -sd:)
left_out=${LEFT_OUT:+$LEFT_OUT:}$left_out
mkdir -p "$RESULTS/vm"
# A guest is several times slower than the host.
export RNICD_TEST_PROVIDER=verbs RNICD_TEST_SLOWNESS=${RNICD_TEST_SLOWNESS:-3} RNICD_TEST_DAEMON_FLAGS=$flags
"$BUILD/$1" --gtest_output="json:$RESULTS/vm/$name.json" --gtest_filter="${2:-*}-$left_out"
