# shellcheck shell=bash
# Runs as root in the booted Debian of scripts/package-test --systemd: the installed unit under its systemd.
set -Eeuo pipefail
exec </dev/null

readonly FLAGS=/etc/rnicd/rnicd.flags DROP_IN=/run/systemd/system/rnicd@.service.d/try.conf
heading() { printf '\n== %s\n' "$*"; }
fail() {
  printf 'systemd_steps: %s\n' "$*"
  systemctl status --no-pager --full rnicd@a || true
  journalctl --no-pager --unit rnicd@a --lines 40 || true
  exit 1
}
trap 'fail "line $LINENO"' ERR
expect() { [[ $2 == "$3" ]] || fail "$1: expected '$3', found '$2'"; }
# wait_for WHAT COMMAND...: waits until the command succeeds, at most three minutes.
wait_for() {
  local what=$1 tries=0
  shift
  until "$@" >/dev/null 2>&1; do
    if ((++tries > 1800)); then fail "$what does not happen"; fi
    sleep 0.1
  done
}
# shown PROPERTY: of the unit, as systemd knows it.
shown() { systemctl show --property "$1" --value rnicd@a; }
set_flags() { printf '%s\n' --socket_dir=/run/rnicd --admin_socket_dir=/run/rnicd-admin --metrics_address= "$@" >"$FLAGS"; }
register() { setpriv --reuid=65534 --regid=65534 --clear-groups rnicctl register --size 4KiB >/dev/null; }
runs_as_another() { [[ $(shown MainPID) != @(0|"$1") && $(systemctl is-active rnicd@a) == active ]]; }
is_in_state() { [[ $(systemctl is-active rnicd@a) == "$1" ]]; }
shows_hang() { [[ $(shown StatusText) == *" has not answered for "* ]]; }
grep_log() { journalctl --unit rnicd@a --no-pager | grep -q -- "$1"; }
has_restarted() { (($(shown NRestarts) >= $1)); }

heading "start: done when it serves"
set_flags --provider=soft
systemctl start rnicd@a
register
rnicctl health
expect "its status" "$(shown StatusText)" serves
expect "the user" "$(stat -c %U "/proc/$(shown MainPID)")" rnicd

heading "reload"
install -m 0644 /usr/share/rnicd/policy.example.textproto /etc/rnicd/policy.textproto
set_flags --provider=soft --policy_file=/etc/rnicd/policy.textproto
systemctl restart rnicd@a
systemctl reload rnicd@a
wait_for "a line of the new policy" grep_log "policy in force"
wait_for "the end of the reload" is_in_state active
expect "its status" "$(shown StatusText)" serves

heading "kill -9"
pid=$(shown MainPID)
kill -KILL "$pid"
wait_for "another daemon" runs_as_another "$pid"
register

heading "a daemon that hangs: killed by the watchdog"
pid=$(shown MainPID)
kill -STOP "$pid"
wait_for "another daemon" runs_as_another "$pid"
grep_log "Watchdog timeout"
register

heading "stop"
systemctl stop rnicd@a
expect "the result" "$(shown Result) $(shown ActiveState)" "success inactive"

heading "invalid and misspelt flags: the start fails, once"
for flag in --max_sessions=-1 --max_sesions=1; do
  set_flags --provider=soft "$flag"
  ! systemctl start rnicd@a 2>/dev/null || fail "systemctl says that it started"
  expect "the unit" "$(shown ActiveState) $(shown ExecMainStatus) $(shown NRestarts)" "failed 2 0"
done

heading "no card: the start fails, and is tried until a card appears"
# So many starts in so short a time as systemd's own limit, which is 5 in 10 seconds, forbids.
mkdir -p "${DROP_IN%/*}"
printf '[Service]\nRestartSec=100ms\n' >"$DROP_IN"
systemctl daemon-reload
set_flags --provider=verbs
! systemctl start rnicd@a 2>/dev/null || fail "systemctl says that it started"
wait_for "the eighth start" has_restarted 8
set_flags --provider=soft
wait_for "the daemon" is_in_state active
register
systemctl stop rnicd@a

heading "one thread that hangs: killed by the watchdog too"
# A card that does not return from the registration holds the thread that serves it.
set_flags --provider=soft --rpc_threads=1 --hold_registrations_while=/etc/hostname --health_timeout_ms=200
systemctl start rnicd@a
pid=$(shown MainPID)
(register || true) &
wait_for "the status" shows_hang
wait_for "another daemon" runs_as_another "$pid"
expect "its status" "$(shown StatusText)" serves
wait

echo "the unit works" >/try/result
