# shellcheck shell=bash
# Sourced in the guest: functions on the cards' GID tables, and on its processors.

# gid_slot CARD PATTERN: the number of the first slot whose address matches, such as "fe80:*" for the link-local one.
# Slots are found by content, because an address that was removed and added again may have another number.
gid_slot() {
  local slot gid
  for slot in {0..15}; do
    # An empty slot cannot be read.
    { read -r gid <"/sys/class/infiniband/$1/ports/1/gids/$slot"; } 2>/dev/null || continue
    # shellcheck disable=SC2053  # a pattern is wanted
    if [[ $gid == $2 ]]; then
      printf '%s\n' "$slot"
      return 0
    fi
  done
  return 1
}

# card_ready CARD: the port is up, and both its link-local and its IPv4 address are usable.
card_ready() {
  [[ $(<"/sys/class/infiniband/$1/ports/1/state") == *ACTIVE ]] || return 1
  gid_slot "$1" 'fe80:*' >/dev/null && gid_slot "$1" '*:ffff:0a62:*' >/dev/null
}

# wait_until SECONDS COMMAND...: until the command succeeds.
wait_until() {
  local end=$((SECONDS + $1 + 1))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.05
  done
}

# on_all_processors COMMAND...: with the guest's other two processors on. They are off otherwise, as that is faster.
on_all_processors() {
  local status=0
  switch_others 1
  "$@" || status=$?
  switch_others 0
  return "$status"
}

# switch_others STATE: 1 is on, 0 is off.
switch_others() {
  local file
  for file in /sys/devices/system/cpu/cpu[1-9]/online; do printf '%s\n' "$1" >"$file"; done
}
