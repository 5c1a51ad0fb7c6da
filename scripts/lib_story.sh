# shellcheck shell=bash
# Sourced after lib.sh: the steps of scripts/demo, one function each. They run on two stages: in scripts/demo on this
# machine with the soft provider, and in tests/vm/demo.sh with the verbs provider in a guest that has RDMA cards. The
# variables up to the first function describe the first stage; the second stage overrides them.

PROVIDER=soft
# The folder with rnicd and rnicctl, which the clients' user can access.
PROGRAMS=''
# The daemon and the clients run as users that own no files.
DAEMON_UID=65533 CLIENT_UID=65534
DAEMON_WHO="user $DAEMON_UID" CLIENT_WHO="user $CLIENT_UID, no group, no capability"
if [[ $EUID -ne 0 ]]; then
  DAEMON_WHO="you" CLIENT_WHO="you; run the demo as root to see it work for another user"
fi
# Memlock limit of a client in KiB; empty: as this shell's.
CLIENT_MEMLOCK=''
# Size of the fast registration, and the matching arguments of `rnicctl demo fast-register`.
FAST_SIZE='8 MiB' FAST_ARGUMENTS=()
# Maximum time for which a dead client's pages may stay registered.
RECLAIM_MS=1000
# Factor of every timeout.
WAIT_FACTOR=1

readonly PAGE_BYTES=4096

# Hooks with which a stage shows the card itself. Each is called after the event in its name, and fails if the card
# disagrees: a client, with its name, pid and pages, has registered; the operator has looked; client 1 was killed;
# client 2 has ended; the daemon has ended.
card_after_registration() { :; }
card_for_operator() { :; }
card_after_kill() { :; }
card_after_clients() { :; }
card_after_daemon() { :; }

# --- Output ---------------------------------------------------------------------------------------------------------

STEP=0
next() {
  STEP=$((STEP + 1))
  printf '\n%s%d. %s%s\n' "$BOLD" "$STEP" "$*" "$PLAIN"
}
# Shows a command's output indented.
show() { sed 's/^/   /' || true; }
show_command() { printf '   %s$ %s%s\n' "$DIM" "$*" "$PLAIN"; }
# Shows a command, runs it, shows its output.
run() {
  show_command "$@"
  "$@" 2>&1 | show
}

# --- Processes and cleanup -------------------------------------------------------------------------------

state='' daemon='' client1='' client2=''

# make_state: creates a folder for logs and sockets. The clients' user must have access to it.
make_state() {
  state=$(mktemp -d /tmp/rnicd-demo.XXXXXX)
  chmod 0755 "$state"
}

# end PID: ends a process that this script started, if it is still running.
end() {
  [[ -n $1 ]] || return 0
  kill -TERM "$1" 2>/dev/null || return 0
  for _ in {1..50}; do
    kill -0 "$1" 2>/dev/null || return 0
    sleep 0.1
  done
  kill -KILL "$1" 2>/dev/null || true
}

clean_up() {
  local status=$?
  trap - EXIT
  end "$client1"
  end "$client2"
  end "$daemon"
  if ((status != 0)) && [[ -s $state/daemon.log ]]; then
    say
    say "The demo failed. The end of the daemon's log:"
    tail -n 20 "$state/daemon.log" | show
  fi
  if [[ -n $state ]]; then rm -rf "$state"; fi
  exit "$status"
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# as UID COMMAND...: replaces this shell by the command, as that user, without groups and without any capability.
as() {
  local uid=$1
  shift
  if [[ $EUID -ne 0 || $uid -eq 0 ]]; then exec "$@"; fi
  exec setpriv --reuid "$uid" --regid "$uid" --clear-groups --inh-caps=-all --bounding-set=-all --no-new-privs "$@"
}
as_client() {
  if [[ -n $CLIENT_MEMLOCK ]]; then ulimit -l "$CLIENT_MEMLOCK"; fi
  as "$CLIENT_UID" "$@"
}

# --- State of the daemon
# -----------------------------------------------------------------------------------------------

rnicctl() { timeout $((30 * WAIT_FACTOR)) "$PROGRAMS/rnicctl" "$@"; }

# status_field NAME: one value from the top of `rnicctl status`: the resources below may have the same names.
status_field() { rnicctl status --json 2>/dev/null | sed -nE "s/^  \"$1\": \"?([^\",]*).*/\1/p"; }

# wait_until SECONDS COMMAND...: waits until the command succeeds.
wait_until() {
  local end=$((SECONDS + $1 * WAIT_FACTOR))
  shift
  until "$@"; do
    ((SECONDS < end)) || return 1
    sleep 0.1
  done
}

daemon_answers() { kill -0 "$daemon" 2>/dev/null && rnicctl status --json >/dev/null 2>&1; }
# A daemon that has exited will never respond.
daemon_decided() { has_ended "$daemon" || daemon_answers; }
registered_pages_are() { [[ $(status_field registered_pages) == "$1" ]]; }
sessions_are() { [[ $(status_field sessions) == "$1" ]]; }
has_ended() { ! kill -0 "$1" 2>/dev/null; }

# end_by_itself NAME PID: sends SIGTERM to the process and waits; its exit status is in $ended_with afterwards.
end_by_itself() {
  kill -TERM "$2" || fail "$1 had ended before it was asked to"
  wait_until 20 has_ended "$2" || fail "$1 does not end on SIGTERM"
  ended_with=0
  { wait "$2"; } 2>/dev/null || ended_with=$?
}

# --- The clients -----------------------------------------------------------------------------------------------------

# start_client NAME ARGUMENT...: runs `rnicctl register ARGUMENT...` as the unprivileged user; its pid is in $!
# afterwards.
start_client() {
  local name=$1
  shift
  show_command rnicctl register "$@"
  (as_client "$PROGRAMS/rnicctl" register "$@") >"$state/$name.log" 2>&1 &
}

# show_registration NAME PID PAGES TOTAL: waits until the node has TOTAL pages registered, then shows the client's
# output.
show_registration() {
  local name=$1 pid=$2 pages=$3 total=$4
  if ! wait_until 20 registered_pages_are "$total"; then
    show <"$state/$name.log"
    fail "$name did not register its memory"
  fi
  # The client prints address and tokens after the daemon has counted its pages.
  wait_until 5 grep -qE '0x[0-9a-f]+ .*0x[0-9a-f]+ .*0x' "$state/$name.log" || fail "$name printed no tokens"
  show <"$state/$name.log"
  say "   ${DIM}process $pid: $(grep -E '^(Uid|CapEff)' "/proc/$pid/status" | tr -s '\t' ' ' | paste -sd, -)$PLAIN"
  card_after_registration "$name" "$pid" "$pages"
}

# --- Steps of the demo
# -------------------------------------------------------------------------------------------------------

begin_daemon() {
  install -d -m 0755 "$state/run"
  export RNICD_SOCKET_DIR=$state/run/rnicd
  if [[ $EUID -eq 0 ]]; then chown "$DAEMON_UID:$DAEMON_UID" "$state/run"; fi

  next "The daemon, as $DAEMON_WHO, with the $PROVIDER provider"
  (as "$DAEMON_UID" "$PROGRAMS/rnicd" "--provider=$PROVIDER" --socket_dir="$RNICD_SOCKET_DIR" \
    --metrics_address=127.0.0.1:0) >"$state/daemon.log" 2>&1 &
  daemon=$!
  { wait_until 20 daemon_decided && daemon_answers; } || fail "the daemon did not start"
  metrics=$(status_field metrics_address)
  run rnicctl adapters
  say "   metrics on http://$metrics/metrics"
}

serve_client1() {
  next "Client 1 ($CLIENT_WHO): 64 MiB from the daemon, registered"
  start_client client1 --size 64MiB --flags local-write,remote-read,remote-write --hold forever
  client1=$!
  # Killing the client is part of the demo, so bash's message about it is suppressed.
  disown "$client1"
  pages1=$((64 * 1024 * 1024 / PAGE_BYTES))
  show_registration client1 "$client1" "$pages1" "$pages1"
}

serve_client2() {
  next "Client 2 (the same user): registers 8 MiB of its own memory"
  start_client client2 --import --size 8MiB --hold forever
  client2=$!
  pages2=$((8 * 1024 * 1024 / PAGE_BYTES))
  show_registration client2 "$client2" "$pages2" $((pages1 + pages2))
}

fast_register() {
  next "Fast registration (the same user): $FAST_SIZE in shuffled pages, one work request, one token"
  show_command rnicctl demo fast-register "${FAST_ARGUMENTS[@]}"
  (as_client timeout $((120 * WAIT_FACTOR)) "$PROGRAMS/rnicctl" demo fast-register "${FAST_ARGUMENTS[@]}") 2>&1 | show ||
    fail "the fast registration did not hold"
  # Both of its sessions have ended with it; client 1 and client 2 keep their memory.
  wait_until 5 sessions_are 2 || fail "a session of the fast registration is still there"
  registered_pages_are $((pages1 + pages2)) || fail "pages of the fast registration are still registered"
}

operator_looks() {
  next "What the operator sees"
  run rnicctl sessions
  run rnicctl regions
  show_command "curl http://$metrics/metrics"
  curl --silent --show-error --fail --max-time 10 "http://$metrics/metrics" |
    grep -E '^rnicd_(registered_(pages|bytes)|memory_(regions|bytes)|sessions|(registrations|tokens_issued)_total)\b' |
    show
  card_for_operator
}

# kill_and_measure PID PAGES: kills the process; prints the milliseconds until at most PAGES were registered.
kill_and_measure() {
  python3 - "http://$metrics/metrics" "$1" "$2" <<'PYTHON'
import os, re, signal, sys, time, urllib.request

def registered_pages():
    page = urllib.request.urlopen(sys.argv[1], timeout=5).read().decode()
    return float(re.search(r"^rnicd_registered_pages(?:\{[^}]*\})? (\S+)", page, re.MULTILINE)[1])

# Reads the page once before, so that the first response is not slower than the others.
registered_pages()
began = time.monotonic()
os.kill(int(sys.argv[2]), signal.SIGKILL)
while registered_pages() > float(sys.argv[3]):
    if time.monotonic() - began > 10:
        sys.exit("its pages are still registered after 10 seconds")
    time.sleep(0.001)
print(round((time.monotonic() - began) * 1000, 1))
PYTHON
}

kill_client1() {
  next "kill -9 for client 1"
  local took dead
  took=$(kill_and_measure "$client1" "$pages2") || fail "client 1 is dead, but its memory was not taken back"
  dead=$client1 client1=''
  say "   its $pages1 pages are back to 0, ${GREEN}$took ms$PLAIN after the kill; client 2 keeps its $pages2"
  card_after_kill
  run rnicctl sessions
  if rnicctl sessions --json | grep -qE "\"pid\": *\"?$dead\b"; then fail "the session of client 1 is still there"; fi
  if ((${took%.*} >= RECLAIM_MS)); then fail "it took more than $RECLAIM_MS ms"; fi
}

end_client2() {
  next "Client 2 ends by itself (SIGTERM)"
  end_by_itself "client 2" "$client2"
  client2=''
  say "   its exit status is $ended_with"
  wait_until 5 sessions_are 0 || fail "the session of client 2 is still there"
  registered_pages_are 0 || fail "pages are still registered"
  card_after_clients
  run rnicctl status
}

end_daemon() {
  next "The daemon ends (SIGTERM)"
  end_by_itself "the daemon" "$daemon"
  [[ $ended_with -eq 0 ]] || fail "the daemon ended with exit status $ended_with"
  daemon=''
  say "   its exit status is 0"
  card_after_daemon
}

tell_story() {
  begin_daemon
  serve_client1
  serve_client2
  fast_register
  operator_looks
  kill_client1
  end_client2
  end_daemon
}
