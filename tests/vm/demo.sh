# shellcheck shell=bash
# Runs in the guest, for `scripts/demo --verbs`: the story of scripts/lib_story.sh on the guest's two cards, and after
# each of its chapters the kernel's view. $PROGRAMS is the folder with the programs, $STEP the number of the last step
# shown.
set -euo pipefail
programs=$PROGRAMS step=$STEP
# shellcheck source=scripts/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/lib.sh"
# shellcheck source=scripts/lib_story.sh
source "$REPO/scripts/lib_story.sh"

PROVIDER=verbs PROGRAMS=$programs STEP=$step
# Pinning requires an unlimited memlock limit, or root as here. The daemon needs root for nothing else.
DAEMON_UID=0 DAEMON_WHO="root"
CLIENT_MEMLOCK=0
CLIENT_WHO="user $CLIENT_UID, no group, no capability, may not lock a byte of memory"
# rxe loses packets of long READs and retransmits them, sometimes for seconds.
FAST_SIZE='64 KiB' FAST_ARGUMENTS=(--pages 16)
# The processors are emulated, and may share theirs with a compiler.
RECLAIM_MS=5000 WAIT_FACTOR=3

# --- The kernel's view -----------------------------------------------------------------------------------------------

# run_line TEXT: shows a line of shell, runs it and shows its output, or "(nothing)" if there is none. Ignores failures.
run_line() {
  local output
  show_command "$1"
  output=$(bash -c "$1" 2>&1) || true
  show <<<"${output:-(nothing)}"
}

# registered_keys: prints how many remote keys the kernel lists, and the number of bytes they cover.
registered_keys() {
  rdma -j resource show mr | python3 -c '
import json, sys
text = sys.stdin.read()
keys = [mr for mr in (json.loads(text) if text.strip() else []) if int(mr["rkey"], 16) != 0]
print(len(keys), sum(mr["mrlen"] for mr in keys))'
}

# key_rows KEY: the kernel's rows with this remote key.
key_rows() { rdma resource show mr | grep "rkey $1 "; }
no_registrations() { [[ -z $(rdma resource show mr) ]]; }
resources_are() { [[ $(rdma resource show) == "$1" ]]; }
pinned_kib() { awk '/^VmPin:/ { print $2 }' "/proc/$1/status"; }
may_lock() { awk '/^Max locked memory/ { print $4 }' "/proc/$1/limits"; }

# --- The kernel's chapters -------------------------------------------------------------------------------------------

show_cards() {
  say "   Linux $(uname -r)"
  run_line "ibv_devinfo | grep -E 'hca_id|state|active_mtu|link_layer'"
  idle=$(rdma resource show)
  run_line "rdma resource show"
}

declare -A keys=()
total_kib=0
card_after_registration() {
  local name=$1 pid=$2 bytes=$(($3 * PAGE_BYTES)) token client_kib daemon_kib
  # A client prints the local token first, then the remote one.
  token=$(grep -oE '\b0x[0-9a-f]{8}\b' "$state/$name.log" | sed -n 2p)
  keys[$name]=$(printf '0x%x' "$token")
  run_line "rdma resource show mr | grep 'rkey ${keys[$name]} '"
  [[ $(key_rows "${keys[$name]}") == *" mrlen $bytes "* ]] || fail "the kernel does not list the token of $name as a key"
  say "   the remote token is a key of the card: the kernel lists it as rkey ${keys[$name]}, for all $bytes bytes"
  total_kib=$((total_kib + bytes / 1024))
  client_kib=$(pinned_kib "$pid") daemon_kib=$(pinned_kib "$daemon")
  say "   pinned by the client, which may lock $(may_lock "$pid") bytes: $client_kib KiB; by the daemon: $daemon_kib KiB"
  ((client_kib == 0 && daemon_kib >= total_kib)) || fail "$name has pinned pages, or the daemon too few"
}

card_for_operator() {
  local count bytes pages
  run_line "rdma resource show mr"
  say "   ${DIM}pid and comm: the daemon's thread that made it; rkey 0x0: a page of the daemon's own, closed to peers$PLAIN"
  read -r count bytes <<<"$(registered_keys)"
  pages=$(status_field registered_pages)
  ((bytes == pages * PAGE_BYTES)) || fail "the kernel lists $bytes bytes, and rnicd $pages pages"
  ((count == ${#keys[@]})) || fail "the kernel lists $count keys instead of ${#keys[@]}"
  say "   the kernel and rnicd agree: $count keys, $bytes bytes"
}

card_after_kill() {
  run_line "rdma resource show mr | grep 'rkey ${keys[client1]} '"
  if key_rows "${keys[client1]}" >/dev/null; then fail "the kernel still lists the key of client 1"; fi
  key_rows "${keys[client2]}" >/dev/null || fail "the kernel does not list the key of client 2 any more"
  say "   client 1's key is gone from the card, client 2's is not; pinned by the daemon: $(pinned_kib "$daemon") KiB"
}

card_after_clients() {
  wait_until 5 no_registrations || fail "the kernel still lists registrations: $(rdma resource show mr)"
  run_line "rdma resource show mr"
}

card_after_daemon() {
  wait_until 5 resources_are "$idle" || fail "the daemon left something on a card: $(rdma resource show)"
  run_line "rdma resource show"
  say "   what is left is the kernel's own, as before the daemon"
}

make_state
show_cards
tell_story
