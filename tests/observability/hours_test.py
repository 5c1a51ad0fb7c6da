"""Hours of real daemons, quiet and with a fault each, are evaluated by the shipped rules: exactly the alerts of the fault fire.

usage: hours_test.py --rnicd PROGRAM --rnicctl PROGRAM

An hour is 61 readings (hours.py).
"""

import argparse
import fcntl
import os
import sys
from pathlib import Path

sys.dont_write_bytecode = True

from hours import BEGIN, MINUTES, Hour, evaluate, play_all
from processes import Process, ProcessError, wait_for
from workload import Workload

# Larger than the files of the memory pool.
FILE_BYTES = 2 << 20


# --- the hours: each leaves the readings of a whole hour, and answers the alerts that must fire --------------------------


def quiet(hour):
    Workload(hour.folder, hour.daemon).hold("stays", "--size=1MiB")
    hour.read_until(MINUTES)
    return set()


def busy(hour):
    workload = Workload(hour.folder, hour.daemon)
    hour.read_until(MINUTES, lambda: workload.register("4KiB"))
    return set()


def clients_that_die(hour):
    workload = Workload(hour.folder, hour.daemon)

    def die():
        client, _ = workload.hold(f"dies-{hour.minute}", "--size=64KiB")
        client.kill()

    hour.read_until(BEGIN + 10, die)
    hour.read_until(MINUTES)
    return set()


def one_upgrade(hour):
    hour.read_until(BEGIN)
    hour.restart()
    hour.read_until(MINUTES)
    return set()


def a_daemon_that_restarts(hour):
    for start in range(1, 4):
        hour.read_until(BEGIN * start)
        hour.restart()
    hour.read_until(MINUTES)
    return {"DaemonRestarting"}


def a_dead_daemon(hour):
    hour.read_until(BEGIN)
    hour.daemon.kill()
    hour.read_until(MINUTES)
    return {"DaemonDown"}


def a_card_that_hangs(hour):
    hour.restart("--health_interval_ms=10", "--health_timeout_ms=10", f"--hold_registrations_while={__file__}")
    hour.read_until(MINUTES)
    return {"AdapterUnhealthy"}


def a_flood_of_connections(hour):
    workload = Workload(hour.folder, hour.daemon)
    hour.read_until(BEGIN)
    hour.read_until(BEGIN + 20, lambda: workload.flood(workload.shared))
    hour.read_until(MINUTES)
    return {"ConnectionsRefused"}


def sockets_that_are_removed(hour):
    socket = hour.folder / "s" / "rpc.sock"

    def remove():
        socket.unlink()
        wait_for("the socket", socket.exists)

    hour.read_until(BEGIN, remove)
    hour.read_until(MINUTES)
    return set()


def sockets_whose_lock_another_has(hour):
    sockets = hour.folder / "s"
    hour.read_until(BEGIN)
    with open(hour.folder / "lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        os.replace(lock.name, sockets / "lock")
        (sockets / "rpc.sock").unlink()
        hour.wait_for("rnicd_parts_not_serving 1")
        hour.read_until(MINUTES)
    return {"NotServing"}


def a_policy_that_is_refused(hour):
    hour.read_until(BEGIN)
    (hour.folder / "policy.textproto").write_text("no policy")
    if hour.daemon.ctl("reload").returncode != 1:
        raise ProcessError("the policy was not refused")
    hour.read_until(MINUTES)
    return {"PolicyRefused"}


def an_audit_log_that_is_full(hour):
    # As large as a file may be from now on.
    log = hour.folder / "audit.jsonl"
    log.write_text("\n" * FILE_BYTES)
    hour.restart(wrapper=("prlimit", f"--fsize={FILE_BYTES}"))
    workload = Workload(hour.folder, hour.daemon)
    hour.read_until(BEGIN)
    workload.register("4KiB")
    hour.read_until(MINUTES)
    return {"AuditLinesLost"}


HOURS = (quiet, busy, clients_that_die, one_upgrade, a_daemon_that_restarts, a_dead_daemon, a_card_that_hangs,
         a_flood_of_connections, sockets_that_are_removed, sockets_whose_lock_another_has,
         a_policy_that_is_refused, an_audit_log_that_is_full)


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--rnicd", "--rnicctl"):
        parser.add_argument(name, type=lambda text: Path(text).resolve(), required=True)
    arguments = parser.parse_args()

    def begin(folder):
        Process.end_all()
        return Hour(folder, arguments.rnicd, arguments.rnicctl)

    hours, failed = play_all(HOURS, begin)
    return 1 if evaluate(hours) + failed else 0


if __name__ == "__main__":
    sys.exit(main())
