"""docs/*.svg of docs/*.sequence: who sends what to whom, as a picture.

A line of a .sequence file is empty, a comment (#), or one of:
  title TEXT                     above the picture
  about TEXT                     the picture in words, for those who do not see it
  party KEY | NAME | NOTE        a column, from left to right
  band TEXT                      a heading; the lines that follow share a ground
  KEY -> KEY: TEXT               a request; => an answer, <> both ways, x> what is refused
  KEY: TEXT                      what a party does by itself
  begin KEY TEXT, end KEY        a bar at the right edge, from the line before to the line before
  foot TEXT                      below the picture
"""

import collections
import html
import re

from .problem import Problem

Party = collections.namedtuple("Party", "key name note x")
Step = collections.namedtuple("Step", "kind source target text")

# The picture is as wide as its texts need, within these.
_WIDTH_MIN, _WIDTH_MAX, _SIDE, _EDGE = 860, 1120, 120, 22
_HEAD, _ROW, _BAND, _BAR = 64, 36, 30, 34
_MESSAGE = re.compile(r"^(\w+) (->|=>|<>|x>) (\w+): (.+)$")
_NOTE = re.compile(r"^(\w+): (.+)$")
# Widths of letters of DejaVu Sans, the widest of the fonts below, as parts of the font's size.
_NARROW, _WIDE = set("ijlt.,:;'|!()[] f"), set("mwMW@%")

_STYLE = """\
  <style>
    .ground { fill: #f6f8fa; stroke: #c3cdd8 }
    .band { fill: #ffffff; stroke: #d5dde6 }
    .party { fill: #e8f0fa; stroke: #6f93bd; stroke-width: 1.2 }
    .life { stroke: #9aa8b6; stroke-dasharray: 3 4 }
    .line { stroke: #44546a; stroke-width: 1.6 }
    .answer { stroke-dasharray: 7 4 }
    .refused { stroke: #b3261e; stroke-width: 1.8 }
    .tip { fill: #44546a }
    .act { fill: #eef1f4; stroke: #9aa8b6 }
    .bar { fill: #fdf1d8; stroke: #c98f1b; stroke-width: 1.2 }
    text { fill: #1d2733; font-size: 13px }
    .title { font-size: 17px; font-weight: bold }
    .name { font-size: 14px; font-weight: bold }
    .note { font-size: 12px; fill: #445261 }
    .head { font-size: 12px; font-weight: bold; fill: #2f4a66 }
    .no { fill: #b3261e }
    .label, .head, .no { paint-order: stroke; stroke: #ffffff; stroke-width: 5px }
    @media (prefers-color-scheme: dark) {
      .ground { fill: #15191f; stroke: #39424e }
      .band { fill: #1b2129; stroke: #323b46 }
      .party { fill: #20344c; stroke: #6f93bd }
      .life { stroke: #66727f }
      .line { stroke: #a9b8c8 }
      .refused { stroke: #ff8a80 }
      .tip { fill: #a9b8c8 }
      .act { fill: #2a313a; stroke: #66727f }
      .bar { fill: #463610; stroke: #c98f1b }
      text { fill: #e6edf3 }
      .note { fill: #b3bfcc }
      .head { fill: #9cc4f0 }
      .no { fill: #ff8a80 }
      .label, .head, .no { stroke: #1b2129 }
    }
  </style>"""


def width_of(text, size):
    """An estimate in pixels, rather too large."""
    letters = sum(0.36 if char in _NARROW else 0.95 if char in _WIDE else 0.72 if char.isupper() else 0.63 for char in text)
    return letters * size


class Sequence:
    """A parsed .sequence file."""

    def __init__(self, name, text):
        self.name, self.title, self.about, self.foot = name, "", "", ""
        self.parties, self.steps, self.bars = {}, [], {}
        for number, line in enumerate(text.splitlines(), 1):
            if line.strip() and not line.startswith("#"):
                self._read(line.strip(), number)
        for key, (_, until, _) in self.bars.items():
            if until is None:
                self.bars[key][1] = len(self.steps)
        self._place()

    def _read(self, line, number):
        word, _, rest = line.partition(" ")
        if word in ("title", "about", "foot"):
            setattr(self, word, rest)
        elif word == "party" and rest.count(" | ") == 2:
            key, name, note = rest.split(" | ")
            self.parties[key] = Party(key, name, note, 0)
        elif word == "band":
            self.steps.append(Step("band", None, None, rest))
        elif word == "begin" and " " in rest:
            key, _, label = rest.partition(" ")
            self.bars[key] = [len(self.steps) - 1, None, label]
        elif word == "end" and rest in self.bars:
            self.bars[rest][1] = len(self.steps)
        elif (found := _MESSAGE.match(line)) and found[1] != found[3] and {found[1], found[3]} <= set(self.parties):
            self.steps.append(Step(found[2], found[1], found[3], found[4]))
        elif (found := _NOTE.match(line)) and found[1] in self.parties:
            self.steps.append(Step("act", found[1], None, found[2]))
        else:
            raise Problem(f"{self.name}:{number}: cannot read: {line}")

    def _place(self):
        """Spreads the parties so that each message fits between its two."""
        keys, bars = list(self.parties), _EDGE + len(self.bars) * _BAR
        margins = _EDGE + 2 * _SIDE + bars
        gap = (_WIDTH_MIN - margins) / max(len(keys) - 1, 1)
        for step in self.steps:
            if step.target:
                columns = abs(keys.index(step.source) - keys.index(step.target))
                gap = max(gap, (width_of(step.text, 13) + 24) / columns)
        self.width = round(margins + gap * (len(keys) - 1))
        if self.width > _WIDTH_MAX:
            raise Problem(f"{self.name}: {self.width} pixels wide, {_WIDTH_MAX} at most: shorten its longest messages")
        self.right = self.width - bars
        for index, (key, party) in enumerate(self.parties.items()):
            self.parties[key] = party._replace(x=round(_EDGE + _SIDE + index * gap))

    def must_fit(self, text, size, room):
        if width_of(text, size) > room:
            raise Problem(f"{self.name}: there is no room for: {text}")


def _text(x, y, words, kind="", anchor="middle", extra=""):
    kind = f' class="{kind}"' if kind else ""
    return f'  <text{kind} x="{x}" y="{y}" text-anchor="{anchor}"{extra}>{html.escape(words)}</text>'


def _rect(kind, x, y, width, height, radius=6):
    return f'  <rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="{radius}"/>'


def _message(sequence, step, y):
    source, target = sequence.parties[step.source].x, sequence.parties[step.target].x
    way = 1 if target > source else -1
    kind = {"->": "line", "=>": "line answer", "<>": "line", "x>": "refused"}[step.kind]
    end = target - way * (14 if step.kind == "x>" else 2)
    lines = [_text((source + target) / 2, y - 7, step.text, "no" if step.kind == "x>" else "label"),
             f'  <path class="{kind}" fill="none" d="M{source} {y}H{end}"/>']
    if step.kind == "x>":
        lines.append(f'  <path class="refused" d="M{end - 6} {y - 6}l12 12m0 -12l-12 12"/>')
    else:
        lines.append(f'  <path class="tip" d="M{target} {y}l{-way * 10} -5v10z"/>')
    if step.kind == "<>":
        lines.append(f'  <path class="tip" d="M{source} {y}l{way * 10} -5v10z"/>')
    return lines


def _act(sequence, step, y):
    """A box on the lifeline of a party, as wide as its text."""
    x, wide = sequence.parties[step.source].x, round(width_of(step.text, 12)) + 20
    left = max(x - wide / 2, _EDGE + 4)
    sequence.must_fit(step.text, 12, sequence.right - left)
    return [_rect("act", left, y - 19, wide, 25), _text(left + wide / 2, y - 2, step.text, "note")]


def _bars(sequence, places):
    """`places` are the heights of the steps."""
    lines = []
    for index, (first, until, label) in enumerate(sequence.bars.values()):
        x = sequence.width - _EDGE - (len(sequence.bars) - index) * _BAR + 8
        top, bottom = places[max(first, 0)], places[until - 1]
        sequence.must_fit(label, 12, bottom - top - 8)
        middle = (top + bottom) / 2
        lines += [_rect("bar", x, top, _BAR - 10, bottom - top),
                  _text(x + 16, middle, label, "note", extra=f' transform="rotate(-90 {x + 16} {middle})"')]
    return lines


def draw(sequence):
    """The picture as SVG."""
    y, places, grounds, drawn = 2 * _EDGE + _HEAD + 34, [], [], []
    for step in sequence.steps:
        if step.kind == "band":
            y += 14
            grounds.append([y - 20, y - 20])
            drawn.append(_text(_EDGE + 12, y - 2, step.text, "head", "start"))
            y += _BAND
        else:
            drawn += _act(sequence, step, y) if step.kind == "act" else _message(sequence, step, y)
            y += _ROW
        places.append(y - _ROW)
        if grounds:
            grounds[-1][1] = y - 18
    width = sequence.width
    sequence.must_fit(sequence.foot, 12, width - 2 * _EDGE - 16)
    height = y + 34
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
             'role="img"', '     aria-labelledby="title description" font-family="DejaVu Sans, Segoe UI, Helvetica, Arial, '
             'sans-serif">', f"  <!-- Generated by scripts/generate from {sequence.name}. Do not edit. -->",
             f'  <title id="title">{html.escape(sequence.title)}</title>',
             f'  <desc id="description">{html.escape(sequence.about)}</desc>', _STYLE,
             _rect("ground", 1, 1, width - 2, height - 2, 14), _text(_EDGE + 12, 34, sequence.title, "title", "start")]
    lines += [_rect("band", _EDGE, top, width - 2 * _EDGE, bottom - top, 8) for top, bottom in grounds]
    for party in sequence.parties.values():
        wide = round(max(width_of(party.name, 15), width_of(party.note, 12))) + 24
        lines += [f'  <path class="life" d="M{party.x} {_EDGE + _HEAD + 30}V{y - 18}"/>',
                  _rect("party", party.x - wide / 2, _EDGE + 28, wide, _HEAD - 16),
                  _text(party.x, _EDGE + 48, party.name, "name"), _text(party.x, _EDGE + 66, party.note, "note")]
    lines += [*_bars(sequence, places), *drawn, _text(_EDGE + 12, y + 12, sequence.foot, "note", "start"), "</svg>"]
    return "\n".join(lines) + "\n"


def make(repo):
    pages = {}
    for path in sorted((repo / "docs").glob("*.sequence")):
        name = path.relative_to(repo).as_posix()
        pages[path.with_suffix(".svg")] = draw(Sequence(name, path.read_text()))
    return pages
