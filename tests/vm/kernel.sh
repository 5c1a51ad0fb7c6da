# shellcheck shell=bash
# Sourced by scripts/setup and scripts/vm-test, after scripts/lib.sh: unpacks a Debian kernel for the guest, with the
# headers that kernel/ is built against, into .cache/vm. Installs nothing.
#
# Debian's stock kernel is the one that this machine's apt has. RNICD_VM_KERNEL names another (suites_of), from a suite
# that only an apt with folders of its own in .cache/vm knows.

# shellcheck source=tests/vm/image.sh
source tests/vm/image.sh

# Options of all calls of apt here.
APT_OPTIONS=(-qq -o APT::Sandbox::User=root)

apt_update() {
  if [[ -n $RNICD_VM_KERNEL ]]; then
    apt-get "${APT_OPTIONS[@]}" -o Acquire::Languages=none update
  else
    as_root apt-get -qq -o DPkg::Lock::Timeout=300 update
  fi
}

# download FOLDER PACKAGE: the package's file, with a second try after an update of apt's lists.
download() {
  if ! (cd "$1" && apt-get "${APT_OPTIONS[@]}" download "$2"); then
    apt_update
    (cd "$1" && apt-get "${APT_OPTIONS[@]}" download "$2")
  fi
}

# suites_of VERSION: the suites that have this kernel, each behind the suite of this machine that is on the same mirror.
suites_of() {
  case $1 in
    6.12) say "bookworm bookworm-backports" ;;
    5.10) printf '%s\n' "bookworm bullseye" "bookworm-security bullseye-security" ;;
    *) fail "no kernel $1 here; there are 6.12 and 5.10, besides Debian 12's own" ;;
  esac
}

# use_other_apt VERSION: has apt read these suites, and nothing of this machine but the addresses of its mirrors.
use_other_apt() {
  local folder=$VM_CACHE/apt-$1 own suite mirror
  mkdir -p "$folder"/{lists,archives}/partial
  while read -r own suite; do
    # shellcheck disable=SC2016  # apt expands it
    mirror=$(apt-get indextargets --format '$(REPO_URI)' "Created-By: Packages" "Codename: $own" "Component: main" |
      head -n 1)
    [[ -n $mirror ]] || fail "this machine's apt has no $own, so it is not known where $suite is"
    say "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $suite main"
  done < <(suites_of "$1") >"$folder/sources.list"
  APT_OPTIONS+=(-o "Dir::Etc::sourcelist=$folder/sources.list" -o Dir::Etc::sourceparts=-
    -o "Dir::State::lists=$folder/lists" -o Dir::State::status=/dev/null -o "Dir::Cache=$folder")
}

# depends_on PACKAGE PATTERN: the first package whose name matches that the package depends on; nothing where apt does
# not know the package.
depends_on() {
  { apt-cache "${APT_OPTIONS[@]}" depends "$1" 2>/dev/null || true; } |
    sed -n "s/^[ |]*Depends: \($2\)$/\1/p" | head -n 1
}

# unpack_headers FOLDER VERSION TO: what a module is built with, to TO/usr. The package's Makefile names its installed
# place.
unpack_headers() {
  local package kbuild
  kbuild=$(depends_on "linux-headers-$2" 'linux-kbuild-.*')
  for package in "linux-headers-$2" "linux-headers-${2%-*}-common" "$kbuild"; do
    download "$1" "$package"
    dpkg -x "$1/$package"_*.deb "$3"
  done
  # shellcheck disable=SC2016  # make expands it
  sed -i 's|^include /usr/src/|include $(dir $(realpath $(firstword $(MAKEFILE_LIST))))../|' \
    "$3/usr/src/linux-headers-$2/Makefile"
}

# Unpacked again when the list of modules changes.
kernel_unpacked() { cmp -s tests/vm/modules.txt "$VM_KERNEL/modules.txt" && [[ -d $VM_KERNEL/usr/src ]]; }

# unpack_kernel: of the package's 400 MB the image and the modules of tests/vm/modules.txt with their dependencies are
# kept. The headers belong to the same version.
unpack_kernel() (
  local folder package version room
  mkdir -p "$VM_CACHE"
  room=$(df --block-size=M --output=avail "$VM_CACHE" | tail -n 1 | tr -dc '0-9')
  ((room >= 600)) || fail "unpacking a kernel takes 600 MB for a moment, and ${VM_CACHE#"$REPO"/} has $room MB"
  if [[ -n $RNICD_VM_KERNEL ]]; then use_other_apt "$RNICD_VM_KERNEL"; fi
  package=$(depends_on linux-image-amd64 'linux-image-[0-9].*')
  if [[ -z $package ]]; then
    apt_update
    package=$(depends_on linux-image-amd64 'linux-image-[0-9].*')
  fi
  [[ -n $package ]] || fail "apt knows no linux-image-amd64, so there is no kernel for the guest of tests/vm"
  version=${package#linux-image-}
  folder=$(mktemp -d -p "$VM_CACHE")
  trap 'rm -rf "$folder"' EXIT
  say "unpacking $package and its headers (84 MB) into ${VM_KERNEL#"$REPO"/}"
  download "$folder" "$package"
  dpkg -x "$folder"/linux-image-*.deb "$folder/all"
  # Packages have their modules there since Debian 13.
  if [[ ! -e $folder/all/lib ]]; then ln -s usr/lib "$folder/all/lib"; fi
  depmod -b "$folder/all" "$version"
  install -D --target-directory "$folder/kept/boot" "$folder/all/boot/vmlinuz-$version"
  cd "$folder/all"
  module_files . "$version" |
    xargs cp --parents --target-directory "$folder/kept" "lib/modules/$version"/modules.{order,builtin,builtin.modinfo}
  cd "$REPO"
  depmod -b "$folder/kept" "$version"
  unpack_headers "$folder" "$version" "$folder/kept"
  cp tests/vm/modules.txt "$folder/kept/"
  rm -rf "$VM_KERNEL"
  mv "$folder/kept" "$VM_KERNEL"
)

# The files of Debian's kernel source that make siw, with a checksum library that the image does not keep.
readonly SIW_FILES=('*/drivers/infiniband/sw/siw/*.[ch]' '*/lib/libcrc32c.c' '*/crypto/crc32c_generic.c')

# unpack_siw: the sources of siw, an iWARP card in software that Debian's kernel leaves out, from the source package
# of the same kernel (139 MB, of which 0.5 MB are kept).
unpack_siw() (
  local folder
  mkdir -p "$VM_CACHE"
  folder=$(mktemp -d -p "$VM_CACHE")
  trap 'rm -rf "$folder"' EXIT
  say "unpacking siw from linux-source-6.1 (139 MB) into ${VM_SIW#"$REPO"/}"
  download "$folder" linux-source-6.1
  mkdir "$folder/kept"
  dpkg-deb --fsys-tarfile "$folder"/linux-source-*.deb | tar -xO ./usr/src/linux-source-6.1.tar.xz |
    tar -xJ -C "$folder/kept" --no-anchored --transform 's|.*/||' --wildcards "${SIW_FILES[@]}"
  rm -rf "$VM_SIW"
  mv "$folder/kept" "$VM_SIW"
)
