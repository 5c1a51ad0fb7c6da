# shellcheck shell=bash
# A step of steps.txt: loads the kernel module rnicd_fr, proves what it promises, and removes it.
#
# usage: bash tests/vm/step_fr.sh
# RNICD_FR_KILLS: processes that are killed with everything alive (default 100).
set -euo pipefail

# with_module FOLDER FILTER [PARAMETER...]: runs the tests of the filter with the module of that build.
with_module() (
  insmod "$BUILD/kernel/$1/rnicd_fr.ko" "${@:3}"
  trap 'rmmod rnicd_fr' EXIT
  "$BUILD/tests/vm/fr/rnicd_vm_fr" --gtest_filter="$2"
)

with_module rnicd_fr '-Failure.*'
# rxe does not need the DMA key, but can show that giving and taking it is harmless.
with_module rnicd_fr_faults 'Failure.*:FastRegistration.*' dma_key=1
