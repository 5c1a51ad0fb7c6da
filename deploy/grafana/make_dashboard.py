"""Writes dashboard.json beside this file. The same sources always produce the same bytes.

usage: make_dashboard.py [--check] [--runbooks URL]
  --check          write nothing; fail when dashboard.json is stale
  --runbooks URL   where docs/runbooks of your own copy can be read; default: https://rnicd.example/docs/runbooks
"""

import argparse
import json
import pathlib
import sys

sys.dont_write_bytecode = True

import rows_memory
import rows_system
from variables import variables

FILE = pathlib.Path(__file__).resolve().parent / "dashboard.json"
RUNBOOKS = "https://rnicd.example/docs/runbooks"
COLUMNS = 24
# The rows in order: title, panels, and whether the row is initially open; a folded row shows its title only.
ROWS = [
    ("Fleet", rows_memory.fleet, True),
    ("Tenants", rows_memory.tenants, True),
    ("Registration", rows_memory.registration, True),
    ("Failures", rows_memory.failures, True),
    ("Reclaim and leaks", rows_memory.reclaim, False),
    ("Tokens", rows_system.tokens, False),
    ("Queue pairs", rows_system.queue_pairs, False),
    ("Memory pool", rows_memory.pool, False),
    ("Rings", rows_system.rings, False),
    ("Adapter", rows_system.adapters, True),
    ("Kubernetes", rows_system.kubernetes, False),
    ("Daemon", rows_system.daemon, True),
]


class Layout:
    """Places panels from left to right and top to bottom, and numbers them."""

    def __init__(self, runbooks):
        self.runbooks = runbooks
        self.y, self.x, self.line_height, self.last_id = 0, 0, 0, 0

    def _number(self):
        self.last_id += 1
        return self.last_id

    def end_line(self):
        self.x, self.y, self.line_height = 0, self.y + self.line_height, 0

    def place(self, panel):
        size = panel["gridPos"]
        if self.x + size["w"] > COLUMNS:
            self.end_line()
        placed = {"id": self._number(), **panel, "gridPos": {**size, "x": self.x, "y": self.y}}
        placed["links"] = [_link(f"Runbook: {name}", f"{self.runbooks}/{name}.md", f"When the alert {name} fires")
                           for name in placed.pop("runbooks")]
        self.x += size["w"]
        self.line_height = max(self.line_height, size["h"])
        return placed

    def row(self, title, panels, is_open):
        """The row's panels: after its heading when it is open, inside of it when it is folded."""
        self.end_line()
        heading = {"id": self._number(), "type": "row", "title": title, "collapsed": not is_open, "panels": [],
                   "gridPos": {"w": COLUMNS, "h": 1, "x": 0, "y": self.y}}
        self.y += 1
        after_heading = self.y
        placed = [self.place(panel) for panel in panels]
        self.end_line()
        if is_open:
            return [heading, *placed]
        # A folded row takes no space.
        self.y = after_heading
        return [{**heading, "panels": placed}]


def _link(title, url, tooltip):
    return {"asDropdown": False, "icon": "doc", "includeVars": False, "keepTime": False, "tags": [],
    "targetBlank": True,
            "title": title, "tooltip": tooltip, "type": "link", "url": url}


def _annotations():
    """Uses only panels and data sources that come with Grafana."""
    return {"list": [{"builtIn": 1, "datasource": {"type": "grafana", "uid": "-- Grafana --"}, "enable": True,
                      "hide": True, "iconColor": "rgba(0, 211, 255, 1)", "name": "Annotations & Alerts",
                      "type": "dashboard"}]}


def dashboard(runbooks):
    layout = Layout(runbooks)
    panels = [panel for title, make, is_open in ROWS for panel in layout.row(title, make(), is_open)]
    return {"annotations": _annotations(),
            "description": "Registered RDMA memory of a fleet: who holds how much, what fails, what comes back.",
            "editable": True, "fiscalYearStartMonth": 0, "graphTooltip": 1,
            "links": [_link("Runbooks", f"{runbooks}/README.md", "What to do when an alert fires")],
            "panels": panels, "refresh": "30s", "schemaVersion": 39, "tags": ["rdma", "rnicd"],
            "templating": {"list": variables()}, "time": {"from": "now-1h", "to": "now"}, "timepicker": {},
            "timezone": "browser", "title": "rnicd", "uid": "rnicd", "version": 1, "weekStart": ""}


def text(runbooks=RUNBOOKS):
    return json.dumps(dashboard(runbooks), indent=1, ensure_ascii=False) + "\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--runbooks", default=RUNBOOKS)
    arguments = parser.parse_args()
    wanted = text(arguments.runbooks.rstrip("/"))
    if not arguments.check:
        FILE.write_text(wanted)
    elif not FILE.exists() or FILE.read_text() != wanted:
        print("deploy/grafana/dashboard.json is stale: run deploy/grafana/make_dashboard.py and commit the result")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
