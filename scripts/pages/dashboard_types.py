"""The dashboard as a TypeScript program, for `scripts/lint dashboard`: it compiles only if the JSON has the types of
@grafana/schema, the whole and the options of each panel.

usage: dashboard_types.py DASHBOARD_JSON > FILE.ts
"""

import json
import pathlib
import sys

# The schema's module for the options of each kind of panel.
PANELS = {"bargauge": "BarGauge", "gauge": "Gauge", "heatmap": "Heatmap", "stat": "Stat",
          "state-timeline": "StateTimeline", "table": "Table", "timeseries": "TimeSeries"}
HEAD = """\
import type {{ Dashboard }} from "@grafana/schema";
{imports}
// The schema's types as JSON has them: an enumeration of strings is its strings.
type Json<T> = T extends string ? `${{T}}` : T extends object ? {{ [K in keyof T]: Json<T[K]> }} : T;
"""


def _import(kind):
    folder = kind.replace("-", "")
    path = f"@grafana/schema/dist/esm/raw/composable/{folder}/panelcfg/x/{PANELS[kind]}PanelCfg_types.gen"
    return f'import type {{ Options as {PANELS[kind]} }} from "{path}";'


def _panels(dashboard):
    for panel in dashboard["panels"]:
        yield from panel["panels"] if panel["type"] == "row" else [panel]


def program(dashboard):
    lines = [HEAD.format(imports="\n".join(_import(kind) for kind in PANELS))]
    for panel in _panels(dashboard):
        kind, options = PANELS[panel["type"]], json.dumps(panel["options"], indent=1)
        # Omitted options have a default.
        lines.append(f"// {panel['title']}\nexport const panel{panel['id']}: Json<Partial<{kind}>> = {options};")
    lines.append(f"export const dashboard: Json<Dashboard> = {json.dumps(dashboard, indent=1)};")
    return "\n".join(lines)


if __name__ == "__main__":
    print(program(json.loads(pathlib.Path(sys.argv[1]).read_text())))
