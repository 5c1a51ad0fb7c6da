# shellcheck shell=bash
# Sourced by guest, after scripts/lib.sh: builds the kernel and the initramfs that a guest boots, if an input has
# changed.

VM_CACHE=$REPO/.cache/vm
# RNICD_VM_KERNEL is the version of another kernel than Debian 12's own (kernel.sh).
RNICD_VM_KERNEL=${RNICD_VM_KERNEL:-}
VM_KERNEL=$VM_CACHE/kernel${RNICD_VM_KERNEL:+-$RNICD_VM_KERNEL}
# Sources of the module siw (kernel.sh).
# shellcheck disable=SC2034  # kernel.sh and module.sh use it
VM_SIW=$VM_CACHE/siw
VM_IMAGE=$VM_CACHE${RNICD_VM_KERNEL:+/image-$RNICD_VM_KERNEL}
VM_SOURCE=$REPO/tests/vm

# broken TEXT: reports that the rig itself failed, not the command in the guest. 125 as in env, timeout and docker.
broken() {
  printf '%sguest: %s%s\n' "$RED" "$*" "$PLAIN" >&2
  exit 125
}

need_tools() {
  local tool
  for tool in qemu-system-x86_64 busybox cpio depmod modprobe python3 strip; do
    command -v "$tool" >/dev/null || broken "there is no $tool here; run scripts/setup"
  done
  compgen -G "$VM_KERNEL/boot/vmlinuz-*" >/dev/null ||
    broken "there is no kernel in ${VM_KERNEL#"$REPO"/}; run scripts/setup, which downloads one (84 MB) with apt-get"
}

kernel_version() {
  local image
  image=$(compgen -G "$VM_KERNEL/boot/vmlinuz-*" | head -n 1)
  say "${image##*/vmlinuz-}"
}

# wanted_modules: modules.txt without its comments.
wanted_modules() { sed 's/#.*//; /^\s*$/d' "$VM_SOURCE/modules.txt"; }

# module_files FOLDER VERSION: the files of all wanted modules and their dependencies, below FOLDER, in loading order.
# Ignores the host's modprobe configuration.
module_files() {
  local module
  while read -r module; do
    modprobe --config /dev/null --dirname "$1" --set-version "$2" --show-depends "$module" ||
      broken "the kernel $2 has no module $module (tests/vm/modules.txt)"
  done < <(wanted_modules) | sed -n 's|^insmod .*/\(lib/modules/[^ ]*\).*|\1|p' | awk '!seen[$0]++'
}

# All inputs of the image, as one line. A checksum, because an upgraded busybox may be older than its copy.
image_inputs() {
  sha256sum "$VM_SOURCE"/{modules.txt,init.sh,image.sh,vmlinux.py} "$VM_KERNEL"/boot/vmlinuz-* \
    "$VM_KERNEL"/lib/modules/*/modules.dep "$(command -v busybox)" | sha256sum
}

# pack_initramfs VERSION OUTPUT
pack_initramfs() {
  local folder files file
  files=$(module_files "$VM_KERNEL" "$1")
  folder=$(mktemp -d)
  mkdir -p "$folder"/{bin,dev,proc,sys,host,control,modules}
  cp "$(command -v busybox)" "$folder/bin/busybox"
  install -m 0755 "$VM_SOURCE/init.sh" "$folder/init"
  for file in $files; do
    cp "$VM_KERNEL/$file" "$folder/modules/"
    file=${file##*/}
    say "${file%.xz}" >>"$folder/modules/order"
  done
  # Newer kernels pack their modules.
  find "$folder/modules" -name '*.xz' -exec busybox unxz {} +
  # Strip debug symbols, and the signatures that the guest would spend time verifying.
  strip --strip-debug "$folder"/modules/*.ko
  (cd "$folder" && find . -print0 | cpio --quiet --null --create --format=newc) >"$2"
  rm -rf "$folder"
}

make_image() {
  local version made=$VM_IMAGE/making.$$
  version=$(kernel_version)
  mkdir -p "$made"
  if ! python3 "$VM_SOURCE/vmlinux.py" "$VM_KERNEL/boot/vmlinuz-$version" "$made/vmlinux"; then
    say "guest: the kernel is not packed with xz and unpacks itself at every boot, which takes seconds" >&2
    cp "$VM_KERNEL/boot/vmlinuz-$version" "$made/vmlinux"
  fi
  pack_initramfs "$version" "$made/initramfs"
  mv "$made"/{vmlinux,initramfs} "$VM_IMAGE/"
  rmdir "$made"
}

# prepare_image: creates vmlinux and initramfs in VM_IMAGE. Several guests may start at the same time.
prepare_image() {
  local inputs
  need_tools
  inputs=$(image_inputs)
  mkdir -p "$VM_IMAGE"
  if [[ $(cat "$VM_IMAGE/inputs" 2>/dev/null) == "$inputs" ]]; then return; fi
  # In a subshell, because `set -e` does not apply in a function before ||.
  (
    set -e
    flock 9
    [[ $(cat "$VM_IMAGE/inputs" 2>/dev/null) != "$inputs" ]] || exit 0
    rm -rf "$VM_IMAGE"/making.*
    make_image
    say "$inputs" >"$VM_IMAGE/inputs"
  ) 9>"$VM_IMAGE/lock" &
  wait $! || broken "could not make the guest's image in ${VM_CACHE#"$REPO"/}: $(room "$VM_IMAGE") free, it takes 90 MB"
}

# room FOLDER: the free space of its file system.
room() { df -h --output=avail "$1" | tail -n 1 | tr -d ' '; }
