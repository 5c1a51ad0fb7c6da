"""Checks deploy/grafana, deploy/prometheus and docs/runbooks with the daemon's catalogue of metrics and promtool.

usage: observability_check.py [--source REPOSITORY]

Prints each finding and fails if there is one. Needs promtool on the path or where scripts/setup unpacks it.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

sys.dont_write_bytecode = True

import yaml

import observability_expressions as expressions
import observability_sources as sources

# Labels that Prometheus adds, and metrics that it creates itself.
TARGET_LABELS = {"job", "instance"}
MADE_BY_PROMETHEUS = {"up": set()}
SEVERITIES = ("critical", "warning")
MANIFESTS = {"podmonitor.yaml": "PodMonitor", "prometheusrule.yaml": "PrometheusRule"}


class Checker:
    """All checks over one repository. `report` gets a line for each finding."""

    def __init__(self, repo, report):
        self.repo, self.report = repo, report
        self.metrics, labels = sources.catalogue(repo)
        self.label_names = {label.name for label in labels}
        self.dashboard = sources.dashboard(repo)
        self.rules = sources.rules(repo)
        self.series = self._series()
        self.used = set()

    def _series(self):
        """{name of a series: its labels} of declared and of recorded series."""
        result = dict(MADE_BY_PROMETHEUS)
        for metric in self.metrics:
            if metric.kind == "histogram":
                result[metric.name + "_bucket"] = {*metric.labels, "le"}
                result[metric.name + "_sum"] = result[metric.name + "_count"] = set(metric.labels)
            else:
                result[metric.name] = set(metric.labels)
        for rule in self.rules:
            if "record" in rule:
                result[rule["record"]] = self._level(rule["record"])
        return {name: labels | TARGET_LABELS for name, labels in result.items()}

    def _level(self, record):
        """The labels that a recorded name begins with, as "instance_tenant:..." does."""
        rest, found = record.partition(":")[0], set()
        for label in sorted(self.label_names | TARGET_LABELS, key=len, reverse=True):
            if re.search(rf"(?:^|_){label}(?:_|$)", rest):
                found.add(label)
                rest = re.sub(rf"(?:^|_){label}(?=_|$)", "_", rest)
        if rest.strip("_"):
            self.report(f"record {record}: its name must begin with the labels that it keeps; {rest.strip('_')} is none")
        return found

    # --- expressions ------------------------------------------------------------------------------------------------

    def _note(self, name):
        for metric in self.metrics:
            if name == metric.name or name in (metric.name + end for end in ("_bucket", "_sum", "_count")):
                self.used.add(metric.name)

    def check_expression(self, where, expression):
        """Every metric is declared, and has every label that the expression uses."""
        try:
            text = expressions.with_values(expression, {**expressions.WINDOWS, **self._choices()})
            selectors, groupings = expressions.selectors(text), expressions.groupings(text)
        except expressions.BadExpression as problem:
            self.report(f"{where}: {problem}")
            return
        for name, labels in selectors:
            self._note(name)
            if name not in self.series:
                self.report(f"{where}: no metric and no rule is called {name}")
            else:
                self._check_labels(where, name, labels)
        for labels, names in groupings:
            for name in names:
                self._check_labels(where, name, labels)

    def _check_labels(self, where, name, labels):
        for label in labels:
            if label not in self.series.get(name, labels):
                self.report(f"{where}: {name} has no label {label}")

    def _choices(self):
        return {variable["name"]: ".*" for variable in self.dashboard["templating"]["list"]
                if variable["name"] not in expressions.WINDOWS}

    def _all_expressions(self):
        yield from sources.panel_expressions(self.dashboard)
        yield from sources.rule_expressions(self.rules)
        for variable in self.dashboard["templating"]["list"]:
            if variable["type"] == "query":
                asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
                # Treated as grouped by the label whose values it lists.
                yield f"variable {variable['name']}", f"sum by ({asked[2]}) ({asked[1]})"

    def check_expressions(self):
        for where, expression in self._all_expressions():
            self.check_expression(where, expression)

    def check_unused(self):
        unused = sources.reasons(self.repo / "deploy/grafana/unused.txt")
        declared = {metric.name for metric in self.metrics}
        for name in sorted(declared - self.used - set(unused)):
            self.report(f"{name} is in no panel and no rule: use it, or say in deploy/grafana/unused.txt why not")
        for name in sorted(self.used & set(unused)):
            self.report(f"deploy/grafana/unused.txt: {name} is used: delete the line")
        for name in sorted(set(unused) - declared):
            self.report(f"deploy/grafana/unused.txt: no metric is called {name}: delete the line")

    # --- the dashboard ----------------------------------------------------------------------------------------------

    def check_panels(self):
        titles = []
        for panel in sources.panels(self.dashboard):
            where = f"panel {panel['title']}"
            titles.append(panel["title"])
            defaults = panel["fieldConfig"]["defaults"]
            for key, value in (("a unit", defaults.get("unit")), ("a noValue", defaults.get("noValue")),
                               ("a description", panel.get("description")), ("a query", panel.get("targets"))):
                if not value:
                    self.report(f"{where}: it has not {key}")
            self._check_legends(where, panel)
            for link in panel.get("links", []):
                self._check_runbook_address(where, link["url"])
        for title in sorted({title for title in titles if titles.count(title) > 1}):
            self.report(f"panel {title}: there are two of that title")

    def _check_legends(self, where, panel):
        for target in panel.get("targets", []):
            if target["datasource"]["uid"] != "${datasource}":
                self.report(f"{where}: its query does not ask the chosen data source")
            known = set()
            for name, _ in expressions.selectors(expressions.with_values(
                    target["expr"], {**expressions.WINDOWS, **self._choices()})):
                known |= self.series.get(name, set())
            for label in re.findall(r"\{\{\s*(\w+)\s*\}\}", target["legendFormat"]):
                if label not in known:
                    self.report(f"{where}: its legend names the label {label}, which its metrics do not have")

    def check_generated(self):
        for script in ("deploy/grafana/make_dashboard.py", "deploy/prometheus/make_prometheusrule.py"):
            result = subprocess.run([sys.executable, self.repo / script, "--check"], capture_output=True, text=True,
                                    check=False, timeout=60)
            if result.returncode != 0:
                self.report((result.stdout + result.stderr).strip() or f"{script} --check fails")

    # --- rules ------------------------------------------------------------------------------------------------------

    def check_alerts(self):
        fired, silent, recorded = self._tested()
        alerts = [rule for rule in self.rules if "alert" in rule]
        for rule in alerts:
            name, where = rule["alert"], f"alert {rule['alert']}"
            if rule.get("labels", {}).get("severity") not in SEVERITIES:
                self.report(f"{where}: its severity is none of {', '.join(SEVERITIES)}")
            for key in ("summary", "description"):
                if not rule.get("annotations", {}).get(key):
                    self.report(f"{where}: it has no {key}")
            if not 5 <= int(re.fullmatch(r"(\d+)m|", rule.get("for", ""))[1] or 0) <= 15:
                self.report(f"{where}: it must wait 5 to 15 minutes")
            self._check_runbook_address(where, rule.get("annotations", {}).get("runbook_url", ""), name)
            for tests, what in ((fired, "firing"), (silent, "silent")):
                if name not in tests:
                    self.report(f"{where}: no test of rnicd.rules_test.yaml shows it {what}")
        for rule in self.rules:
            if "record" in rule and rule["record"] not in recorded:
                self.report(f"record {rule['record']}: rnicd.rules_test.yaml does not ask for it")
        self._check_runbooks({rule["alert"] for rule in alerts})

    def _tested(self):
        """The alerts with a firing test, those with a silent test, and the tested expressions."""
        fired, silent, recorded = set(), set(), set()
        for test in yaml.safe_load((self.repo / "deploy/prometheus/rnicd.rules_test.yaml").read_text())["tests"]:
            for case in test.get("alert_rule_test", []):
                (fired if case["exp_alerts"] else silent).add(case["alertname"])
            recorded |= {case["expr"] for case in test.get("promql_expr_test", []) if case["exp_samples"]}
        return fired, silent, recorded

    def _check_runbook_address(self, where, address, name=None):
        found = re.fullmatch(r"https://rnicd\.example/docs/runbooks/(\w+)\.md", address)
        if not found or not (self.repo / "docs/runbooks" / f"{found[1]}.md").is_file():
            self.report(f"{where}: its runbook {address or '(none)'} is no file of docs/runbooks")
        elif name and found[1] != name:
            self.report(f"{where}: its runbook is that of {found[1]}")

    def _check_runbooks(self, alerts):
        folder = self.repo / "docs/runbooks"
        index = (folder / "README.md").read_text()
        for path in sorted(folder.glob("*.md")):
            if path.name == "README.md":
                continue
            if path.stem not in alerts:
                self.report(f"docs/runbooks/{path.name}: no alert has this name")
            if sources.headings(path.read_text()) != sources.HEADINGS:
                self.report(f"docs/runbooks/{path.name}: its headings must be: {', '.join(sources.HEADINGS)}")
            if f"]({path.name})" not in index:
                self.report(f"docs/runbooks/README.md does not name {path.name}")

    def check_manifests(self):
        for name, kind in MANIFESTS.items():
            document = yaml.safe_load((self.repo / "deploy/prometheus" / name).read_text())
            if (document.get("apiVersion"), document.get("kind")) != ("monitoring.coreos.com/v1", kind):
                self.report(f"deploy/prometheus/{name}: it is no {kind} of monitoring.coreos.com/v1")
        for name, key in (("dashboards/rnicd.yaml", "providers"), ("datasources/prometheus.yaml", "datasources")):
            document = yaml.safe_load((self.repo / "deploy/grafana/provisioning" / name).read_text())
            if document.get("apiVersion") != 1 or not document.get(key):
                self.report(f"deploy/grafana/provisioning/{name}: it has no {key}")

    # --- promtool ---------------------------------------------------------------------------------------------------

    def _promtool(self, *arguments):
        path = f"{self.repo}/.cache/tools/usr/bin:{os.environ['PATH']}"
        result = subprocess.run(["promtool", *map(str, arguments)], capture_output=True, text=True, check=False,
                                timeout=300, env={**os.environ, "PATH": path})
        if result.returncode != 0:
            self.report(f"promtool {arguments[0]} {arguments[1]}: {(result.stdout + result.stderr).strip()}")

    def check_with_promtool(self):
        folder = self.repo / "deploy/prometheus"
        self._promtool("check", "rules", folder / "rnicd.rules.yaml")
        self._promtool("test", "rules", folder / "rnicd.rules_test.yaml")
        self._promtool("check", "config", "--syntax-only", folder / "scrape.example.yaml")
        # Writes every query of the dashboard as a rule, so that Prometheus's own parser checks it.
        values = {**expressions.WINDOWS, **self._choices()}
        rules = [{"record": f"panel:{index}", "expr": expressions.with_values(expression, values)}
                 for index, (_, expression) in enumerate(sources.panel_expressions(self.dashboard))]
        with tempfile.NamedTemporaryFile("w", suffix=".yaml") as file:
            json.dump({"groups": [{"name": "panels", "rules": rules}]}, file)
            file.flush()
            self._promtool("check", "rules", file.name)

    def check_all(self):
        self.check_expressions()
        self.check_unused()
        self.check_panels()
        self.check_alerts()
        self.check_manifests()
        self.check_generated()


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--source", type=Path, default=Path(__file__).resolve().parents[2])
    findings = []
    checker = Checker(parser.parse_args().source.resolve(), findings.append)
    checker.check_all()
    checker.check_with_promtool()
    print("\n".join(findings) or f"{len(checker.metrics)} metrics, {len(checker.rules)} rules, "
          f"{len(list(sources.panels(checker.dashboard)))} panels: no findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
