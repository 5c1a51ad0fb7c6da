"""Builders for the panels of the dashboard: one function for each kind, all with the same look.

A panel cannot be made without a title, a unit, a description and a text for missing data.
"""

DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
GREEN, YELLOW, RED, BLUE, GREY = "green", "#EAB839", "red", "blue", "#808080"
# no_value text of panels whose row does not already explain missing data with a value of its own.
NOTHING_HAPPENED = "nothing in this time range"


def query(expression, legend="", **more):
    """One query of a panel; the panel assigns its letter."""
    return {"datasource": DATASOURCE, "editorMode": "code", "expr": expression, "legendFormat": legend or "__auto",
            "range": True, **more}


def instant(expression, legend="", **more):
    """A query for the newest values only."""
    return query(expression, legend, range=False, instant=True, **more)


def steps(*pairs):
    """Thresholds: (None, colour) first, then (value, colour) in rising order."""
    return {"mode": "absolute", "steps": [{"color": colour, "value": value} for value, colour in pairs]}


PLAIN = steps((None, BLUE))
FILLING = steps((None, GREEN), (0.8, YELLOW), (0.9, RED))
ZERO_IS_GOOD = steps((None, GREEN), (1, RED))


def value_map(*rows):
    """Texts for numbers: (number, text, colour)."""
    return [{"type": "value", "options": {str(number): {"text": text, "color": colour, "index": index}
                                          for index, (number, text, colour) in enumerate(rows)}}]


def _panel(kind, size, title, description, unit, queries, options, *, no_value, thresholds=PLAIN, color=None,
custom=None,
           mappings=(), overrides=(), runbooks=(), decimals=None, low=None, high=None, transformations=()):
    defaults = {"color": color or {"mode": "thresholds"}, "custom": custom or {}, "mappings": list(mappings),
                "noValue": no_value, "thresholds": thresholds, "unit": unit}
    for key, value in (("decimals", decimals), ("min", low), ("max", high)):
        if value is not None:
            defaults[key] = value
    targets = [{"refId": chr(ord("A") + index), **target} for index, target in enumerate(queries)]
    return {"type": kind, "title": title, "description": description, "datasource": DATASOURCE,
            "gridPos": {"w": size[0], "h": size[1]},
            "fieldConfig": {"defaults": defaults, "overrides": list(overrides)},
            "options": options, "targets": targets, "transformations": list(transformations),
            "runbooks": list(runbooks)}


def _reduced(*calculations):
    return {"calcs": list(calculations) or ["lastNotNull"], "fields": "", "values": False}


def stat(title, description, unit, target, *, no_value, width=3, graph=True, text="value", **more):
    """One big number, with its history behind it."""
    options = {"colorMode": "value" if graph else "background", "graphMode": "area" if graph else "none",
               "justifyMode": "auto", "orientation": "auto", "reduceOptions": _reduced(), "textMode": text,
               "wideLayout": True}
    return _panel("stat", (width, 4), title, description, unit, [target], options, no_value=no_value, **more)


def gauge(title, description, unit, target, *, no_value, width=3, **more):
    options = {"orientation": "auto", "reduceOptions": _reduced(), "showThresholdLabels": False,
               "showThresholdMarkers": True}
    more = {"low": 0, "high": 1, "thresholds": FILLING, **more}
    return _panel("gauge", (width, 4), title, description, unit, [target], options, no_value=no_value, **more)


def bars(title, description, unit, target, *, no_value, width=12, height=8, **more):
    """A horizontal bar for each series, from 0 to 100 %."""
    options = {"displayMode": "gradient", "maxVizHeight": 28, "minVizHeight": 14, "minVizWidth": 8,
               "namePlacement": "left", "orientation": "horizontal", "reduceOptions": _reduced(), "showUnfilled": True,
               "sizing": "auto", "valueMode": "color"}
    more = {"low": 0, "high": 1, "thresholds": FILLING, **more}
    return _panel("bargauge", (width, height), title, description, unit, [target], options, no_value=no_value, **more)


def lines(title, description, unit, *targets, no_value, width=12, height=8, stacked=False, fill=12, points="never",
          limit=None, **more):
    """A graph over time. `limit` is a value above which the background is red."""
    custom = {"axisBorderShow": False, "axisPlacement": "auto", "barAlignment": 0, "drawStyle": "line",
              "fillOpacity": 30 if stacked else fill, "gradientMode": "opacity", "lineInterpolation": "smooth",
              "lineWidth": 2, "pointSize": 4, "showPoints": points, "spanNulls": False,
              "stacking": {"group": "A", "mode": "normal" if stacked else "none"},
              "thresholdsStyle": {"mode": "off" if limit is None else "line+area"}}
    options = {"legend": {"calcs": ["lastNotNull", "max"], "displayMode": "table", "placement": "bottom",
                          "showLegend": True, "sortBy": "Last *", "sortDesc": True},
               "tooltip": {"mode": "multi", "sort": "desc"}}
    more = {"low": 0, "color": {"mode": "palette-classic"}, **more}
    if limit is not None:
        more["thresholds"] = steps((None, "transparent"), (limit, RED))
    return _panel("timeseries", (width, height), title, description, unit, list(targets), options, no_value=no_value,
                  custom=custom, **more)


def states(title, description, unit, target, mappings, *, no_value, width=12, height=6, **more):
    """A band of colour for each series."""
    options = {"alignValue": "left", "legend": {"calcs": [], "displayMode": "list", "placement": "bottom",
    "showLegend": True},
               "mergeValues": True, "rowHeight": 0.8, "showValue": "auto", "tooltip": {"mode": "single",
               "sort": "none"}}
    return _panel("state-timeline", (width, height), title, description, unit, [target], options, no_value=no_value,
                  mappings=mappings, custom={"fillOpacity": 75, "lineWidth": 0}, **more)


def heatmap(title, description, unit, target, *, no_value, width=12, height=9, **more):
    """Number of events by duration, over time; the query's series are buckets."""
    options = {"calculate": False, "cellGap": 1,
               "cellValues": {"unit": "none"},
               "color": {"exponent": 0.5, "fill": "dark-orange", "mode": "scheme", "reverse": False,
               "scale": "exponential",
                         "scheme": "Turbo", "steps": 64},
               "exemplars": {"color": "rgba(255,0,255,0.7)"},
               "filterValues": {"le": 1e-9},
               "legend": {"show": True}, "rowsFrame": {"layout": "auto"},
               "tooltip": {"mode": "single", "showColorScale": False, "yHistogram": True},
               "yAxis": {"axisPlacement": "left", "reverse": False, "unit": unit}}
    return _panel("heatmap", (width, height), title, description, unit, [{**target, "format": "heatmap"}], options,
                  no_value=no_value, **more)


def table(title, description, unit, targets, columns, *, no_value, width=12, height=8, hidden=(), **more):
    """Rows joined over all queries. `columns`: {field: (heading, unit or None)}, in the order shown."""
    overrides = [{"matcher": {"id": "byName", "options": heading},
                  "properties": [{"id": "unit", "value": column_unit}]}
                 for heading, column_unit in columns.values() if column_unit]
    organize = {"id": "organize", "options": {
        "excludeByName": {name: True for name in ("Time", "__name__", *hidden)},
        "indexByName": {name: index for index, name in enumerate(columns)},
        "renameByName": {name: heading for name, (heading, _) in columns.items()}}}
    options = {"cellHeight": "sm", "footer": {"countRows": False, "fields": [], "reducer": ["sum"], "show": False},
               "showHeader": True}
    rows = [{**target, "format": "table"} for target in targets]
    return _panel("table", (width, height), title, description, unit, rows, options, no_value=no_value,
                  custom={"align": "auto", "cellOptions": {"type": "auto"}, "filterable": True, "inspect": False},
                  overrides=overrides, transformations=[{"id": "merge", "options": {}}, organize], **more)
