# shellcheck shell=bash
# Run by mmdebstrap, after it has extracted the packages in the root ROOT: writes dpkg's database of them, which it
# leaves empty because nothing is installed. It says which package a library comes from, in which version, and what a
# program that is linked to it depends on.
#
# usage: list_packages.sh ROOT
set -euo pipefail
database=$1/var/lib/dpkg
mkdir -p "$database/info" "$database/updates"
say_control() { dpkg-deb --field "$1" | sed '1a Status: install ok unpacked' && echo; }

echo 1 >"$database/info/format"
: >"$database/status"
control=$(mktemp -d)
trap 'rm -rf "$control"' EXIT
for file in "$1"/var/cache/apt/archives/*.deb; do
  # shellcheck disable=SC2016  # dpkg-deb expands it
  read -r name architecture same < <(
    dpkg-deb --show --showformat='${Package} ${Architecture} ${Multi-Arch}\n' "$file")
  if [[ $same == same ]]; then name=$name:$architecture; fi
  say_control "$file" >>"$database/status"
  dpkg-deb --fsys-tarfile "$file" | tar --list | sed 's#^\.##; s#/$##; s#^$#/.#' >"$database/info/$name.list"
  rm -rf "$control"
  dpkg-deb --control "$file" "$control"
  for part in symbols shlibs triggers; do
    if [[ -f $control/$part ]]; then cp "$control/$part" "$database/info/$name.$part"; fi
  done
done
