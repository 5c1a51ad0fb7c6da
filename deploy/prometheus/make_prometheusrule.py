"""Writes prometheusrule.yaml, the same rules as an object of the Prometheus operator, from rnicd.rules.yaml.

usage: make_prometheusrule.py [--check] [--runbooks URL]
  --check          write nothing; fail when prometheusrule.yaml is stale
  --runbooks URL   where docs/runbooks of your own copy can be read; default: https://rnicd.example/docs/runbooks
"""

import argparse
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent
FILE = FOLDER / "prometheusrule.yaml"
RUNBOOKS = "https://rnicd.example/docs/runbooks"
HEAD = """\
# Made by make_prometheusrule.py from rnicd.rules.yaml. Do not edit.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: rnicd
  labels:
    app.kubernetes.io/name: rnicd
    # The operator uses only rules that its ruleSelector selects, by default none: set the labels of yours.
    release: prometheus
spec:
"""


def text(runbooks=RUNBOOKS):
    """The text of the rules, with their comments, indented by two more columns."""
    rules = (FOLDER / "rnicd.rules.yaml").read_text()
    body = rules[rules.index("groups:"):].replace(RUNBOOKS, runbooks)
    return HEAD + "".join(f"  {line}" if line.strip() else line for line in body.splitlines(True))


# As make_dashboard.py's: each of the two scripts is complete, so that an operator can copy one.
def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runbooks", default=RUNBOOKS)
    arguments = parser.parse_args()
    wanted = text(arguments.runbooks.rstrip("/"))
    if not arguments.check:
        FILE.write_text(wanted)
    elif not FILE.exists() or FILE.read_text() != wanted:
        print("deploy/prometheus/prometheusrule.yaml is stale: run make_prometheusrule.py and commit the result")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
