# shellcheck shell=bash
# A step of steps.txt: loads the kernel module rnicd_fr, proves what it promises, and removes it.
#
# usage: bash tests/vm/step_fr.sh
# RNICD_FR_KILLS: processes that are killed with everything alive (default 100).
set -euo pipefail
# shellcheck source=tests/vm/cards.sh
source tests/vm/cards.sh

# with_module FOLDER FILTER [PARAMETER...]: runs the tests of the filter with the module of that build.
with_module() {
  local status=0
  insmod "$MODULES/$1/rnicd_fr.ko" "${@:3}"
  on_all_processors "$BUILD/tests/vm/fr/rnicd_vm_fr" --gtest_filter="$2" || status=$?
  rmmod rnicd_fr
  return "$status"
}

# rxe of Linux 5.10 does not invalidate keys of the kernel for a peer, and executes requests with a wrong key, so none
# can be made to fail.
not=''
if [[ $(uname -r) == 5.10.* ]]; then not='Failure.*:FastRegistration.PeerInvalidates'; fi

with_module rnicd_fr "-Failure.*:$not"
# rxe does not need the DMA key, but can show that giving and taking it is harmless.
with_module rnicd_fr_faults "Failure.*:FastRegistration.*-$not" dma_key=1
