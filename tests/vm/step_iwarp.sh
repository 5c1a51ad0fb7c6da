# shellcheck shell=bash
# A step of steps.txt: connections of iWARP, on two cards of siw. Conformance by calls, without ConnectQp, which is not
# NDK's; and foreign programs. siw counts pinned memory against the limit even for root.
#
# usage: bash tests/vm/step_iwarp.sh
set -euo pipefail
# shellcheck source=tests/vm/siw.sh
source tests/vm/siw.sh

add_siw_cards
trap remove_siw_cards EXIT
ulimit -l unlimited
export RNICD_TEST_ADAPTER=swa RNICD_TEST_OTHER_ADAPTER=swb RNICD_TEST_MODE=iwarp
LEFT_OUT='*Case168_QueuePairThatConnectQpConnectedIsRefused*:*Case165_QueuePairIsFreeAgain*' \
  CARDS=swa,swb NAME=rnicd_conformance_iwarp bash tests/vm/suite.sh tests/conformance/rnicd_conformance 'Provider/NdkConnections.*'
bash tests/vm/step_foreign.sh swa tests/vm/foreign/test_{rdma_message,rping,ucmatose}.py
