# shellcheck shell=bash
# The first process of the guest, in the host's root: sets up the cards, runs the command on the console, writes its
# exit status for the host, and powers the guest off.
set -uo pipefail
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
export HOME=/root LANG=C.UTF-8 TERM=dumb NO_COLOR=1
readonly CONTROL=/run/rnicd-vm
# shellcheck source=tests/vm/cards.sh
source "${BASH_SOURCE[0]%/*}/cards.sh"
# shellcheck source=tests/vm/network.sh
source "${BASH_SOURCE[0]%/*}/network.sh"

# An emergency restart, at which qemu exits. Nothing is lost: only the files of the shares outlive the guest.
switch_off() {
  [[ ! -s $CONTROL/shares ]] || sync
  echo b >/proc/sysrq-trigger
}

prepare() {
  echo rnicd-vm >/proc/sys/kernel/hostname
  add_cards && wait_for_cards
}

main() {
  local status=0 terminal
  terminal=$(<"$CONTROL/terminal")
  if [[ $terminal == raw ]]; then
    # A terminal, so that programs print line by line, but a raw one that does not change their output.
    stty raw -echo </dev/hvc0
  else
    TERM=$terminal
    unset NO_COLOR
  fi
  if prepare; then
    [[ ! -e $CONTROL/verbose ]] || { rdma link && ip -brief address; }
    # A new session with the console as its terminal. This process remains and reaps orphans.
    setsid --ctty --wait bash "$CONTROL/command" || status=$?
    printf '%s\n' "$status" >"$CONTROL/status"
  fi
}

main </dev/hvc0 >/dev/hvc0 2>&1
switch_off
