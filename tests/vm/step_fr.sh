# shellcheck shell=bash
# A step of steps.txt: loads the kernel module rnicd_fr, proves what it promises, and removes it.
#
# usage: bash tests/vm/step_fr.sh
# RNICD_FR_KILLS: processes that are killed with everything alive (default 100).
set -euo pipefail

insmod "$BUILD/kernel/rnicd_fr/rnicd_fr.ko"
trap 'rmmod rnicd_fr' EXIT
"$BUILD/tests/vm/fr/rnicd_vm_fr"
