# shellcheck shell=bash
# Sourced by scripts/vm-test, scripts/lint and others, after scripts/lib.sh: builds kernel/rnicd_fr, and siw, against
# the headers of the guest's kernel.

# shellcheck source=tests/vm/image.sh
source "$REPO/tests/vm/image.sh"

# modules_folder PRESET: where build_module puts the modules for the guest's kernel.
modules_folder() { say "build/$1/kernel${RNICD_VM_KERNEL:+-$RNICD_VM_KERNEL}"; }

# build_module PRESET: makes rnicd_fr/rnicd_fr.ko in modules_folder, and in rnicd_fr_faults the build whose requests can
# be made to fail.
build_module() {
  build_one_module "$(modules_folder "$1")/rnicd_fr"
  build_one_module "$(modules_folder "$1")/rnicd_fr_faults" -DRNICD_FR_FAULTS
}

# build_one_module FOLDER [FLAG]: kbuild writes beside the sources, so it gets copies. Every warning of the compiler
# (W=1) and of sparse fails. This machine's compiler, and no type information (BTF), which would need pahole.
build_one_module() {
  local folder=$REPO/$1
  mkdir -p "$folder"
  cp --update kernel/rnicd_fr/{Kbuild,*.c,*.h} "$folder/"
  make_modules "$folder" W=1 KCFLAGS="-Werror ${2:-}" C=1 CF=-Wsparse-error
  say "$1/rnicd_fr.ko, for $(basename "$(kernel_headers)")"
}

# build_siw PRESET: makes siw.ko in modules_folder/siw from the unpacked sources, and what it needs.
build_siw() {
  local folder parts=("$VM_SIW"/siw*.c)
  folder=$REPO/$(modules_folder "$1")/siw
  parts=("${parts[@]##*/}")
  mkdir -p "$folder"
  cp --update "$VM_SIW"/*.[ch] "$folder/"
  printf 'obj-m := crc32c_generic.o libcrc32c.o siw.o\nsiw-y := %s\n' "${parts[*]/%.c/.o}" >"$folder/Kbuild"
  make_modules "$folder"
}

kernel_headers() {
  compgen -G "$VM_KERNEL/usr/src/linux-headers-*-amd64" ||
    fail "there are no headers of the guest's kernel in .cache/vm; run scripts/setup"
}

# make_modules FOLDER [SETTING...]
make_modules() {
  make --silent -C "$(kernel_headers)" M="$1" CC=gcc CONFIG_DEBUG_INFO_BTF_MODULES= "${@:2}" modules
}
