"""Hours of real daemons, quiet and with a fault each, are evaluated by the shipped rules: exactly the alerts of the fault fire.

usage: hours_test.py --source REPOSITORY --rnicd PROGRAM --rnicctl PROGRAM

An hour is 61 readings of /metrics that follow each other at once. promtool takes them for a minute apart.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

from processes import Daemon, ProcessError, Process, fetch, wait_for
from workload import Workload

MINUTES = 60
# A fault begins after a healthy daemon was seen.
BEGIN = 5
# Larger than the files of the memory pool.
FILE_BYTES = 2 << 20
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
TARGET = 'job="rnicd",instance="node-1"'


class Hour:
    """What Prometheus would have of one daemon: the values of each series, with gaps."""

    def __init__(self, folder, rnicd, rnicctl):
        folder.mkdir()
        self.folder, self.programs = folder, (rnicd, rnicctl)
        self.minute, self.series = 0, {}
        self.daemon = self.start()

    def start(self, *flags, wrapper=()):
        self.daemon = Daemon(self.folder, *self.programs, *flags, wrapper=wrapper)
        return self.daemon

    def restart(self, *flags, wrapper=()):
        self.daemon.end()
        return self.start(*flags, wrapper=wrapper)

    def read(self):
        """One reading, a minute after the last."""
        try:
            page = fetch(self.daemon.page)
        except OSError:
            page = ""
        for name, labels, value in _SAMPLE.findall(page):
            self._add(f"{name}{{{','.join(filter(None, [labels, TARGET]))}}}", value)
        self._add(f"up{{{TARGET}}}", "1" if page else "0")
        self.minute += 1

    def _add(self, series, value):
        self.series.setdefault(series, {})[self.minute] = value

    def read_until(self, minute, before_each=lambda: None):
        while self.minute <= minute:
            before_each()
            self.read()

    def input_series(self):
        return [{"series": series, "values": " ".join(values.get(minute, "_") for minute in range(self.minute))}
                for series, values in self.series.items()]


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
    # Registrations take longer than a probe waits.
    hour.restart("--health_interval_ms=10", "--health_timeout_ms=10", "--soft_register_delay_us=60000000")
    hour.read_until(MINUTES)
    return {"AdapterUnhealthy"}


def a_flood_of_connections(hour):
    workload = Workload(hour.folder, hour.daemon)
    hour.read_until(BEGIN)
    hour.read_until(BEGIN + 20, workload.flood)
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
         a_flood_of_connections, sockets_that_are_removed, a_policy_that_is_refused, an_audit_log_that_is_full)


def unexpected(folder, rules, hour, expected):
    """What promtool says against the hour; empty if exactly the expected alerts fired in it."""
    fired = f'group by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{MINUTES}m]))'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(expected)]
    test = {"interval": "1m", "input_series": hour.input_series(),
            "promql_expr_test": [{"expr": fired, "eval_time": f"{MINUTES}m", "exp_samples": samples}]}
    path = folder / "hour.yaml"
    path.write_text(json.dumps({"rule_files": [str(rules)], "evaluation_interval": "1m", "tests": [test]}))
    result = subprocess.run(["promtool", "test", "rules", path], capture_output=True, text=True, check=False, timeout=300)
    return (result.stdout + result.stderr).strip() if result.returncode != 0 else ""


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--source", "--rnicd", "--rnicctl"):
        parser.add_argument(name, type=lambda text: Path(text).resolve(), required=True)
    arguments = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory(prefix="rnicd-hours.") as name:
        for play in HOURS:
            folder = Path(name) / play.__name__
            try:
                hour = Hour(folder, arguments.rnicd, arguments.rnicctl)
                problem = unexpected(folder, arguments.source / "deploy/prometheus/rnicd.rules.yaml", hour, play(hour))
            except ProcessError as error:
                problem = str(error)
            finally:
                Process.end_all()
            print(f"{'FAILED' if problem else 'ok':>6}  {play.__name__.replace('_', ' ')} {problem}", flush=True)
            failed += bool(problem)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
