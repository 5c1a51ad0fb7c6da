"""Reads the files of deploy/ that use metrics into plain lists. Shared by the check and by tests/observability."""

import json
import re
import sys

import yaml

# A panel, alert or recording rule, and one of its expressions.
HEADINGS = ("Meaning", "Diagnosis", "Remedy", "Over when")


def catalogue(repo):
    """The metrics and labels that the daemon declares."""
    sys.path.insert(0, str(repo / "scripts"))
    from pages import catalogue as reader
    return reader.read(repo)


def panels(dashboard):
    """All panels except rows' headings, including those of folded rows."""
    for panel in dashboard["panels"]:
        if panel["type"] == "row":
            yield from panel["panels"]
        else:
            yield panel


def panel_expressions(dashboard):
    """(where, expression) of each query of each panel."""
    for panel in panels(dashboard):
        for target in panel["targets"]:
            yield f"panel {panel['title']} {target['refId']}", target["expr"]


def dashboard(repo):
    return json.loads((repo / "deploy/grafana/dashboard.json").read_text())


def rules(repo):
    """All rules in their order."""
    groups = yaml.safe_load((repo / "deploy/prometheus/rnicd.rules.yaml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def rule_expressions(rules_):
    for rule in rules_:
        kind = "alert" if "alert" in rule else "record"
        yield f"{kind} {rule[kind]}", rule["expr"]


def reasons(path):
    """{name: reason} of a list whose lines are "name: reason"; "#" begins a comment."""
    result = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, _, reason = line.partition(": ")
            if not reason.strip() or name in result:
                raise ValueError(f"{path.name}: a name, a colon and a reason, once: {line}")
            result[name] = reason.strip()
    return result


def headings(text):
    return tuple(re.findall(r"^## (.+)$", text, re.MULTILINE))
