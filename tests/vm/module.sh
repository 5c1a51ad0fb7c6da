# shellcheck shell=bash
# Sourced by scripts/vm-test, after scripts/lib.sh: builds kernel/rnicd_fr against the headers of the guest's kernel.

# build_module PRESET: makes build/PRESET/kernel/rnicd_fr/rnicd_fr.ko, and in rnicd_fr_faults the build whose requests can
# be made to fail.
build_module() {
  build_one_module "build/$1/kernel/rnicd_fr"
  build_one_module "build/$1/kernel/rnicd_fr_faults" -DRNICD_FR_FAULTS
}

# build_one_module FOLDER [FLAG]: kbuild writes beside the sources, so it gets copies. Every warning of the compiler (W=1)
# and of sparse fails.
build_one_module() {
  local folder=$REPO/$1 headers
  headers=$(compgen -G "$REPO/.cache/vm/kernel/usr/src/linux-headers-*-amd64") ||
    fail "there are no headers of the guest's kernel in .cache/vm; run scripts/setup"
  mkdir -p "$folder"
  cp --update kernel/rnicd_fr/{Kbuild,*.c,*.h} "$folder/"
  make --silent -C "$headers" M="$folder" W=1 KCFLAGS="-Werror ${2:-}" C=1 CF=-Wsparse-error modules
  say "$1/rnicd_fr.ko, for $(basename "$headers")"
}
