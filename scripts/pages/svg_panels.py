"""Panels in the dark style of Grafana, as SVG: figures, lines, bars and heat."""

import html
import math

PALETTE = ["#73bf69", "#f2cc0c", "#5794f2", "#ff780a", "#f2495c", "#b877d9", "#8ab8ff", "#96d98d"]
_TEXT, _MUTED, _GRID = "#ccccdc", "#8e8e9e", "#2c3036"
_LEGEND_ROW = 17
_LEGEND_MOST = 5
FONT = "Inter, 'Helvetica Neue', Arial, 'DejaVu Sans', sans-serif"


def show(value, unit):
    """A value in the unit of its panel."""
    if unit in ("bytes", "Bps"):
        steps = ["B", "KiB", "MiB", "GiB", "TiB"]
        power = min(int(math.log(value, 1024)), 4) if value >= 1 else 0
        return f"{_short(value / 1024 ** power)} {steps[power]}" + ("/s" if unit == "Bps" else "")
    if unit == "s":
        for size, name in ((1, "s"), (1e-3, "ms"), (1e-6, "µs")):
            if value >= size:
                return f"{_short(value / size)} {name}"
        return f"{_short(value * 1e9)} ns"
    if unit == "percentunit":
        return f"{_short(value * 100)} %"
    return _short(value) + {"ops": "/s", "cps": "/s"}.get(unit, "")


def _short(value):
    return f"{value:.0f}" if value >= 100 or value == int(value) else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def text(x, y, words, size=12, color=_TEXT, anchor="start", weight=400):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{color}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{html.escape(str(words))}</text>')


def frame(box, title):
    x, y, width, height = box
    return (f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="3" fill="#181b1f" stroke="#25282e"/>' +
            text(x + 12, y + 22, title, 13, weight=500))


def _nice_top(value):
    """The next round number above."""
    if value <= 0:
        return 1
    power = 10 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 1.5, 2, 3, 4, 5, 6, 8, 10) if step * power >= value * 0.999)


def _top_for(value, unit):
    if unit in ("bytes", "Bps") and value > 0:
        power = 1024 ** min(int(math.log(max(value, 1), 1024)), 4)
        return _nice_top(value / power) * power
    return _nice_top(value)


def _clock(seconds):
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def _axes(area, span, labels):
    """Horizontal lines at the labels [(share of the height, text)], and minutes below."""
    x, y, width, height = area
    parts = []
    for share, words in labels:
        at = y + height * (1 - share)
        parts.append(f'<path d="M{x} {at:.1f}h{width}" stroke="{_GRID}"/>')
        parts.append(text(x - 6, at + 4, words, 10.5, _MUTED, "end"))
    for second in range(0, int(span) + 1, 30):
        parts.append(text(x + width * second / span, y + height + 15, _clock(second), 10.5, _MUTED, "middle"))
    return "".join(parts)


def _points(area, span, top, values):
    x, y, width, height = area
    return [f"{x + width * when / span:.1f} {y + height * (1 - min(value / top, 1)):.1f}" for when, value in values]


def _stacked(series):
    """Stacks each series on the previous ones; a missing time counts as 0."""
    sums, stacked = {}, []
    for name, values in series:
        own = dict(values)
        for when in own:
            sums.setdefault(when, 0.0)
        sums = {when: before + own.get(when, 0.0) for when, before in sums.items()}
        stacked.append((name, sorted(sums.items())))
    return stacked


def lines(box, title, series, unit, span, stack=False):
    """series: [(name, [(second, value), ...])]."""
    x, y, width, height = box
    # The greatest first, in the order of Grafana's legend; series that were always 0 would only fill the legend.
    series = sorted(series, key=lambda one: -max(value for _, value in one[1]))[:len(PALETTE)]
    series = [one for one in series if any(value > 0 for _, value in one[1])] or series[:1]
    rows = min(len(series), _LEGEND_MOST)
    area = (x + 70, y + 40, width - 86, height - 74 - rows * _LEGEND_ROW)
    drawn = _stacked(series) if stack else series
    top = _top_for(max((value for _, values in drawn for _, value in values), default=0), unit)
    labels = [(share, show(top * share, unit)) for share in (0, 0.25, 0.5, 0.75, 1)]
    parts = [frame(box, title), _axes(area, span, labels)]
    for index, (_, values) in reversed(list(enumerate(drawn))):
        color, path = PALETTE[index], _points(area, span, top, values)
        bottom = area[1] + area[3]
        ground = [f"{path[0].split()[0]} {bottom}", f"{path[-1].split()[0]} {bottom}"]
        if stack and index > 0:
            ground = _points(area, span, top, drawn[index - 1][1])
        parts.append(f'<path d="M{"L".join([*path, *reversed(ground)])}Z" fill="{color}" '
                     f'fill-opacity="{0.35 if stack else 0.1}"/>')
        parts.append(f'<path d="M{"L".join(path)}" fill="none" stroke="{color}" stroke-width="1.6"/>')
    for index, (name, values) in enumerate(series[:rows]):
        at = y + height - 12 - (rows - 1 - index) * _LEGEND_ROW
        parts.append(f'<rect x="{x + 14}" y="{at - 6}" width="14" height="4" rx="2" fill="{PALETTE[index]}"/>')
        parts.append(text(x + 34, at, name, 11.5))
        parts.append(text(x + width - 14, at, f"last {show(values[-1][1], unit)} · max "
                          f"{show(max(value for _, value in values), unit)}", 11.5, _MUTED, "end"))
    return "".join(parts)


def figure(box, title, values, unit, color):
    """The last value, large, above its line."""
    x, y, width, height = box
    top = max((value for _, value in values), default=0) or 1
    area = (x + 1, y + height * 0.7, width - 2, height * 0.3 - 2)
    span = max(values[-1][0], 1)
    path = _points(area, span, top, values)
    bottom = y + height - 1
    last = text(x + width / 2, y + height * 0.58, show(values[-1][1], unit), 30, color, "middle", 600)
    return (frame(box, title) + last +
            f'<path d="M{path[0].split()[0]} {bottom}L{"L".join(path)}L{path[-1].split()[0]} {bottom}Z" fill="{color}" '
            f'fill-opacity="0.18"/><path d="M{"L".join(path)}" fill="none" stroke="{color}" stroke-width="1.4"/>')


def bars(box, title, rows, unit, steps):
    """rows: [(name, value)], 1 is full; steps: [(from, color)] as thresholds."""
    x, y, width, height = box
    names = 250
    parts = [frame(box, title)]
    room = (height - 50) / max(len(rows), 1)
    for index, (name, value) in enumerate(sorted(rows, key=lambda row: -row[1])):
        color = [color for bound, color in steps if value >= bound][-1]
        at = y + 40 + index * room
        long, thick = width - names - 90, min(room - 10, 18)
        parts.append(text(x + names, at + thick / 2 + 4, name, 11.5, _TEXT, "end"))
        parts.append(f'<rect x="{x + names + 10}" y="{at:.1f}" width="{long}" height="{thick:.1f}" fill="#22252b"/>')
        parts.append(f'<rect x="{x + names + 10}" y="{at:.1f}" width="{long * min(value, 1):.1f}" height="{thick:.1f}" '
                     f'fill="{color}"/>')
        parts.append(text(x + width - 14, at + thick / 2 + 4, show(value, unit), 12, color, "end", 600))
    return "".join(parts)


def _heat_color(share):
    """From deep blue over green and yellow to red."""
    stops = [(48, 60, 120), (40, 140, 180), (90, 190, 100), (242, 204, 12), (242, 73, 92)]
    at = min(max(share, 0), 1) * (len(stops) - 1)
    low = min(int(at), len(stops) - 2)
    mixed = [round(a + (b - a) * (at - low)) for a, b in zip(stops[low], stops[low + 1])]
    return "#{:02x}{:02x}{:02x}".format(*mixed)


def heat(box, title, buckets, unit, span):
    """buckets: {upper bound: [(second, count up to that bound), ...]}, cumulative as in Prometheus."""
    x, y, width, height = box
    bounds = sorted(buckets)
    cells = {}
    for lower, upper in zip([None, *bounds], bounds):
        below = dict(buckets[lower]) if lower is not None else {}
        for when, many in buckets[upper]:
            cells[(upper, when)] = many - below.get(when, 0)
    used = [bound for bound in bounds if any(cells.get((bound, when), 0) > 1e-6 for when, _ in buckets[bound])]
    rows = [bound for bound in bounds if used and used[0] <= bound <= used[-1]]
    area = (x + 70, y + 40, width - 86, height - 74)
    labels = [((index + 1) / len(rows), f"≤ {show(bound, unit)}" if math.isfinite(bound) else "more")
              for index, bound in enumerate(rows)]
    parts = [frame(box, title), _axes(area, span, labels)]
    most = max(cells.values(), default=1)
    times = sorted({when for _, when in cells})
    wide = area[2] * (times[1] - times[0]) / span if len(times) > 1 else 4
    tall = area[3] / max(len(rows), 1)
    for (bound, when), many in cells.items():
        if bound in rows and many > 1e-6:
            # In Grafana a cell ends at its timestamp.
            left = max(area[0] + area[2] * when / span - wide, area[0])
            top = area[1] + area[3] - (rows.index(bound) + 1) * tall
            parts.append(f'<rect x="{left:.1f}" y="{top + 0.5:.1f}" width="{max(wide - 0.8, 0.8):.1f}" '
                         f'height="{tall - 1:.1f}" fill="{_heat_color((many / most) ** 0.5)}"/>')
    return "".join(parts)
