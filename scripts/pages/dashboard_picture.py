"""docs/dashboard.svg: selected panels of deploy/grafana/dashboard.json, with data of a real Prometheus."""

import json
import re

import svg_panels

# Title, and its position in a grid of 24 columns: (column, row, columns, rows); a row has kRow pixels.
PANELS = [
    ("Pinned", (0, 0, 6, 3)), ("Sessions", (6, 0, 6, 3)), ("Registrations", (12, 0, 6, 3)), ("Failing", (18, 0, 6, 3)),
    ("Pinned by the biggest tenants", (0, 3, 12, 8)), ("Use of limits in bytes", (12, 3, 12, 8)),
    ("How long registrations take", (0, 11, 12, 8)), ("Failed registrations by reason", (12, 11, 12, 8)),
    ("Sessions opened and ended", (0, 19, 12, 8)), ("Bytes taken back by cause", (12, 19, 12, 8)),
]
_COLUMN, _ROW, _GAP, _MARGIN, _HEAD = 60, 40, 8, 16, 52
_STEP = 2
# A user's choices on the dashboard. The rate window is Grafana's: a little more than four scrapes.
_VARIABLES = {"__rate_interval": "10s", "__interval": f"{_STEP}s", "topn": "6", "interval": "5m"}
_COLORS = {"green": "#73bf69", "red": "#f2495c", "blue": "#5794f2", "orange": "#ff780a", "yellow": "#f2cc0c"}


def panels_by_title(dashboard):
    found = {}
    for panel in dashboard["panels"]:
        for one in [panel, *panel.get("panels", [])]:
            if one["type"] != "row":
                found.setdefault(one["title"], one)
    missing = [title for title, _ in PANELS if title not in found]
    if missing:
        raise SystemExit(f"dashboard.json has no panel {', '.join(missing)}: mend the list in dashboard_picture.py")
    return found


def expand(expression):
    """The expression with the dashboard's variables replaced; variables that are not listed here are "All"."""
    return re.sub(r"\$\{?(\w+)(?::\w+)?\}?", lambda found: _VARIABLES.get(found[1], ".*"), expression)


def _name(form, labels, title):
    if form in (None, "", "__auto"):
        return ", ".join(labels.values()) or title
    return re.sub(r"\{\{\s*(\w+)\s*\}\}", lambda found: labels.get(found[1], ""), form)


def _series(panel, prometheus, begin, end):
    """[(name, [(seconds since the start, value), ...])] of all targets, numbers only."""
    found = []
    for target in panel["targets"]:
        answer = prometheus.ask("query_range", query=expand(target["expr"]), start=begin, end=end, step=_STEP)
        for labels, values in answer:
            finite = [(when - begin, value) for when, value in values if value == value and abs(value) != float("inf")]
            if finite:
                found.append((_name(target.get("legendFormat"), labels, panel["title"]), finite))
    return found


def _steps(panel):
    return [(step["value"] if step["value"] is not None else float("-inf"), _COLORS.get(step["color"], step["color"]))
            for step in panel["fieldConfig"]["defaults"]["thresholds"]["steps"]]


def _heat(box, panel, prometheus, begin, end):
    buckets = {}
    query = expand(panel["targets"][0]["expr"])
    answer = prometheus.ask("query_range", query=query, start=begin, end=end, step=_STEP * 2)
    for labels, values in answer:
        buckets[float(labels["le"])] = [(when - begin, value) for when, value in values]
    return svg_panels.heat(box, panel["title"], buckets, "s", end - begin)


def draw_panel(box, panel, prometheus, begin, end):
    defaults = panel["fieldConfig"]["defaults"]
    unit, title = defaults.get("unit", "none"), panel["title"]
    if panel["type"] == "heatmap":
        return _heat(box, panel, prometheus, begin, end)
    series = _series(panel, prometheus, begin, end)
    if not series:
        raise SystemExit(f"Prometheus has nothing for the panel {title!r}: does the workload not do such a thing?")
    if panel["type"] in ("stat", "gauge"):
        last = series[0][1][-1][1]
        color = [color for bound, color in _steps(panel) if last >= bound][-1]
        return svg_panels.figure(box, title, series[0][1], unit, color)
    if panel["type"] == "bargauge":
        rows = [(name, values[-1][1]) for name, values in series]
        return svg_panels.bars(box, title, rows, unit, _steps(panel))
    stack = defaults["custom"].get("stacking", {}).get("mode") == "normal"
    return svg_panels.lines(box, title, series, unit, end - begin, stack)


def make(dashboard_file, prometheus, begin, end):
    """The picture's text."""
    dashboard = json.loads(dashboard_file.read_text())
    panels = panels_by_title(dashboard)
    width = 24 * _COLUMN + 2 * _MARGIN
    height = max(row + rows for _, (_, row, _, rows) in PANELS) * _ROW + _HEAD + _MARGIN
    what = f"{round(end - begin)} seconds of a run with the soft card, scraped each second"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
             f'height="{height}" font-family="{svg_panels.FONT}">',
             f'<rect width="{width}" height="{height}" fill="#111217"/>',
             svg_panels.text(_MARGIN, 33, dashboard["title"], 18, weight=500),
             svg_panels.text(width - _MARGIN, 33, what, 12, "#8e8e9e", "end")]
    for title, (column, row, columns, rows) in PANELS:
        box = (_MARGIN + column * _COLUMN + _GAP / 2, _HEAD + row * _ROW + _GAP / 2, columns * _COLUMN - _GAP,
               rows * _ROW - _GAP)
        parts.append(draw_panel(box, panels[title], prometheus, begin, end))
    return "\n".join([*parts, "</svg>\n"])
