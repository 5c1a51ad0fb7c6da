"""A real Prometheus scrapes a real, busy daemon; then every expression of the dashboard and the rules is queried.

usage: prometheus_test.py --source REPOSITORY --rnicd PROGRAM --rnicctl PROGRAM
"""

import argparse
import math
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "deploy"))

import live_page
import observability_expressions as expressions
import observability_sources as sources
from processes import Daemon, ProcessError, Process, Prometheus, fetch, wait_for
from workload import Workload

# A scrape follows each turn before the next begins, so that every counter rises between two scrapes. The test counts
# turns, not time, because a turn may take long on a busy machine.
TURNS = 5
# Longer than all turns together, for the same reason.
WINDOWS = {"__rate_interval": "5m", "interval": "5m", "topn": "5"}
HERE = Path(__file__).resolve().parent


def variables(dashboard):
    """Values for all of Grafana's variables: everything."""
    return {**{variable["name"]: ".*" for variable in dashboard["templating"]["list"]}, **WINDOWS}


def queries(repo):
    """(place, expression) of all queries: panels, recording rules and their series, operands of alerts."""
    dashboard = sources.dashboard(repo)
    for place, expression in sources.panel_expressions(dashboard):
        yield place, expressions.with_values(expression, variables(dashboard))
    for rule in sources.rules(repo):
        if "record" in rule:
            yield f"record {rule['record']}", rule["expr"]
            yield f"recorded {rule['record']}", rule["record"]
        else:
            for index, operand in enumerate(expressions.operands(rule["expr"]), 1):
                yield f"alert {rule['alert']} {index}", operand


class ExpressionCheck:
    def __init__(self, repo, prometheus):
        self.prometheus, self.findings = prometheus, []
        self.empty = sources.reasons(HERE / "may_be_empty.txt")
        self.places = set()
        self.repo = repo

    def _evaluate(self, place, expression):
        try:
            series = self.prometheus.query(expression)
        except ProcessError as refused:
            return "-", f"refused: {refused}"
        good = [value for _, (_, value) in series if not math.isnan(float(value))]
        if place in self.empty:
            return len(series), "" if not series else "returns something: delete its line in may_be_empty.txt"
        return len(series), "" if good else "returns nothing"

    def run_all(self):
        print(f"{'series':>6}  what")
        for place, expression in queries(self.repo):
            self.places.add(place)
            count, problem = self._evaluate(place, expression)
            remark = f": {problem}" if problem else " (may be empty)" if place in self.empty else ""
            print(f"{count:>6}  {place}{remark}")
            if problem:
                self.findings.append(f"{place}: {problem}\n        {expression}")
        for place in sorted(set(self.empty) - self.places):
            self.findings.append(f"may_be_empty.txt: there is no {place}")

    def check_alert_rules(self):
        """Whole conditions must be valid, too; whether they are true is not checked here."""
        for rule in sources.rules(self.repo):
            try:
                self.prometheus.query(rule["expr"])
            except ProcessError as refused:
                self.findings.append(f"{rule.get('alert') or rule['record']}: {refused}")
        self.findings += self.prometheus.rule_problems()


def scrapes(prometheus):
    prometheus.must_live()
    found = prometheus.query('sum(sum_over_time(up{job="rnicd"}[10m]))')
    return float(found[0][1][1]) if found else 0


def work(workload, prometheus):
    for _ in range(TURNS):
        workload.turn()
        # The next scrape may have begun before the turn's end; the one after it has not.
        before = scrapes(prometheus)
        wait_for("two scrapes", lambda: scrapes(prometheus) >= before + 2)


def check_expressions(repo, folder, rnicd, rnicctl):
    daemon = Daemon(folder, rnicd, rnicctl)
    workload = Workload(folder, daemon)
    prometheus = Prometheus(folder, daemon.page, repo / "deploy/prometheus/rnicd.rules.yaml")
    workload.begin()
    work(workload, prometheus)
    daemon.must_live()
    result = ExpressionCheck(repo, prometheus)
    result.run_all()
    result.check_alert_rules()
    metrics, labels = sources.catalogue(repo)
    page = fetch(daemon.page)
    live_page.check(page, metrics, sources.reasons(HERE / "not_on_the_page.txt"), result.findings.append)
    live_page.check_values(page, labels, repo, result.findings.append)
    return result


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    for name in ("--source", "--rnicd", "--rnicctl"):
        parser.add_argument(name, type=lambda text: Path(text).resolve(), required=True)
    arguments = parser.parse_args()
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="rnicd-obs.") as name:
        try:
            result = check_expressions(arguments.source, Path(name), arguments.rnicd, arguments.rnicctl)
        except AssertionError as problem:
            print(f"FAILED: {problem}")
            return 1
        finally:
            Process.end_all()
    print(f"\n{len(result.places)} expressions, {time.monotonic() - began:.0f} s")
    print("\n".join(["", "FAILED:", *result.findings]) if result.findings else "no findings")
    return 1 if result.findings else 0


if __name__ == "__main__":
    sys.exit(main())
