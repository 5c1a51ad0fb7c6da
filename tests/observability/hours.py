"""Hours of real daemons, as Prometheus would have them, and what the shipped rules say of them.

usage: hours.py HOURS.json    evaluates the hours that a program has written with play_all

Readings of /metrics follow each other at once; promtool takes them for a minute apart. Only the series that a rule
reads are recorded.
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from processes import SOFT, Daemon, ProcessError, Process, fetch, wait_for

RULES = Path(__file__).resolve().parents[2] / "deploy/prometheus/rnicd.rules.yaml"
MINUTES = 60
# A fault begins after a healthy daemon was seen.
BEGIN = 5
_READ_BY_RULES = set(re.findall(r"[A-Za-z_:][\w:]*", RULES.read_text()))
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_TARGET = 'job="rnicd",instance="node-1"'
# The connection of the reading itself is among them, and one that was not closed yet.
_MOVES_BY_READING = f"process_open_fds{{{_TARGET}}}"


class Hour:
    """What Prometheus would have of one daemon: the values of each series, with gaps."""

    def __init__(self, folder, rnicd, rnicctl, provider=SOFT):
        folder.mkdir()
        self.folder, self.programs, self.provider = folder, (rnicd, rnicctl), provider
        self.begin()
        self.daemon = self.start()

    def begin(self):
        self.minute, self.series = 0, {}

    def start(self, *flags, wrapper=()):
        self.daemon = Daemon(self.folder, *self.programs, *flags, provider=self.provider, wrapper=wrapper)
        return self.daemon

    def restart(self, *flags, wrapper=()):
        self.daemon.end()
        return self.start(*flags, wrapper=wrapper)

    def wait_for(self, line):
        """Until the page has this line."""
        wait_for(line, lambda: line in fetch(self.daemon.page).splitlines())

    def wait_without(self, series):
        """Until the page has no line of this series."""
        wait_for(f"the end of {series}",
                 lambda: not any(line.startswith(series) for line in fetch(self.daemon.page).splitlines()))

    def _reading(self):
        try:
            page = fetch(self.daemon.page)
        except OSError:
            page = ""
        series = {f"{name}{{{','.join(filter(None, [labels, _TARGET]))}}}": value
                  for name, labels, value in _SAMPLE.findall(page) if name in _READ_BY_RULES}
        return {**series, f"up{{{_TARGET}}}": "1" if page else "0"}

    def _record(self, reading):
        for series, value in reading.items():
            self.series.setdefault(series, {})[self.minute] = value
        self.minute += 1

    def read(self):
        """One reading, a minute after the last."""
        self._record(self._reading())

    def read_until(self, minute, before_each=lambda: None):
        while self.minute <= minute:
            before_each()
            self.read()

    def hold_until(self, minute):
        """All minutes until then have what two readings in a row agree on: a daemon at rest would repeat it."""
        readings = [self._reading()]

        def agree():
            readings.append(self._reading())
            return all(readings[-1].get(series) == readings[-2].get(series)
                       for series in readings[-1].keys() | readings[-2].keys() if series != _MOVES_BY_READING)

        wait_for("two readings that agree", agree)
        while self.minute <= minute:
            self._record(readings[-1])

    def input_series(self):
        return [{"series": series, "values": " ".join(_values(values, self.minute))}
                for series, values in self.series.items()]


def _values(values, minutes):
    """A series that a reading has no more ends at once; only promtool's own gaps have the last value for 5 minutes."""
    for minute in range(minutes):
        yield values.get(minute, "stale" if minute - 1 in values else "_")


def play_all(plays, begin):
    """Each play leaves the readings of a whole hour, and answers the alerts that must fire. `begin` makes the hour of a
    play, which may use a folder. Returns the name, series and alerts of each hour, and the number of failed plays. No
    process is left, also not when a play raises."""
    hours, failed = [], 0
    with tempfile.TemporaryDirectory(prefix="rnicd-hours.") as folder:
        try:
            for play in plays:
                problem, name = "", play.__name__.replace("_", " ")
                try:
                    hour = begin(Path(folder) / play.__name__)
                    expected = play(hour)
                    hours.append((name, hour.input_series(), sorted(expected)))
                except AssertionError as error:
                    problem, failed = str(error), failed + 1
                print(f"{'FAILED' if problem else 'played':>6}  {name} {problem}", flush=True)
        finally:
            Process.end_all()
    return hours, failed


def _unexpected(series, expected):
    """What promtool says against an hour; empty if exactly the expected alerts fired in it."""
    fired = f'group by (alertname) (max_over_time(ALERTS{{alertstate="firing"}}[{MINUTES}m]))'
    samples = [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in expected]
    test = {"interval": "1m", "input_series": series,
            "promql_expr_test": [{"expr": fired, "eval_time": f"{MINUTES}m", "exp_samples": samples}]}
    with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
        json.dump({"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}, file)
        file.flush()
        result = subprocess.run(["promtool", "test", "rules", file.name], capture_output=True, text=True, check=False,
                                timeout=300)
    return (result.stdout + result.stderr).strip() if result.returncode != 0 else ""


def evaluate(hours):
    """The number of hours in which other alerts fired than expected."""
    failed = 0
    for name, series, expected in hours:
        problem = _unexpected(series, expected)
        print(f"{'FAILED' if problem else 'ok':>6}  {name} {problem}", flush=True)
        failed += bool(problem)
    return failed


if __name__ == "__main__":
    sys.exit(1 if evaluate(json.loads(Path(sys.argv[1]).read_text())) else 0)
