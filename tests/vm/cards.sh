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

# on_both_processors COMMAND...: with the second processor of the guest on, for what two must not do at once. It is off
# otherwise, as that is faster.
on_both_processors() {
  local second=/sys/devices/system/cpu/cpu1/online status=0
  echo 1 >"$second"
  "$@" || status=$?
  echo 0 >"$second"
  return "$status"
}
