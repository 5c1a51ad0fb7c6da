"""Metrics in a Prometheus expression, and the labels they are used with. Not a parser of all of PromQL:
promtool checks whether an expression is valid."""

import collections
import re

# Grafana's variables for numbers and times; all others are inside of quotes.
WINDOWS = {"__rate_interval": "5m", "interval": "15m", "topn": "10"}

Token = collections.namedtuple("Token", "kind text")
# A metric that the expression reads, and the labels in its braces.
Selector = collections.namedtuple("Selector", "name labels")
# Labels of by, without, on, ignoring or group_left, and the metrics that they apply to.
Grouping = collections.namedtuple("Grouping", "labels names")

_TOKEN = re.compile(r"""(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
                      |(?P<number>\d[\w.]*(?:e[+-]?\d+)?)
                      |(?P<name>[A-Za-z_:][\w:]*)
                      |(?P<sign>==|!=|>=|<=|=~|!~|[-+*/%^<>=(){}\[\],@:])
                      |(?P<space>\s+)
                      |(?P<other>.)""", re.VERBOSE)
_GROUPERS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
_WORDS = _GROUPERS | {"and", "or", "unless", "bool", "offset", "inf", "nan", "atan2"}
_SETS = {"and", "or", "unless"}
_COMPARISONS = {"==", "!=", ">", "<", ">=", "<="}
_OPENING, _CLOSING = {"(", "{", "["}, {")", "}", "]"}


class BadExpression(Exception):
    """The expression cannot be parsed."""


def with_values(expression, values):
    """The expression with Grafana's variables replaced: "$name", "${name}"."""
    def value(found):
        name = found[1] or found[2]
        if name not in values:
            raise BadExpression(f"the variable ${name} is not known in: {expression}")
        return values[name]
    return re.sub(r"\$(?:\{(\w+)\}|(\w+))", value, expression)


def tokens(expression):
    found = [Token(match.lastgroup, match[0]) for match in _TOKEN.finditer(expression)]
    for token in found:
        if token.kind == "other":
            raise BadExpression(f"{token.text!r} has no meaning in: {expression}")
    return [token for token in found if token.kind != "space"]


def _end_of_group(found, start):
    """The index of the bracket that closes the one at `start`."""
    depth = 0
    for index in range(start, len(found)):
        depth += (found[index].text in _OPENING) - (found[index].text in _CLOSING)
        if depth == 0:
            return index
    raise BadExpression("a bracket is not closed in: " + " ".join(token.text for token in found))


def _text_at(found, index):
    return found[index].text if 0 <= index < len(found) else ""


def _selectors(found):
    """(index, Selector) of each metric that is read."""
    index, result = 0, []
    while index < len(found):
        token, after = found[index], _text_at(found, index + 1)
        if token.text in _GROUPERS and after == "(":
            index = _end_of_group(found, index + 1) + 1
        elif token.kind == "name" and token.text.lower() not in _WORDS and after != "(" and not _calls_later(found,
        index):
            end = _end_of_group(found, index + 1) if after == "{" else index
            labels = [found[place].text for place in range(index + 2, end)
                      if found[place].kind == "name" and _text_at(found, place + 1) in ("=", "!=", "=~", "!~")]
            result.append((index, Selector(token.text, labels)))
            index = end + 1
        elif token.text == "{":
            raise BadExpression("braces without a metric's name")
        else:
            index += 1
    return result


def _calls_later(found, index):
    """Whether the name is an aggregation, as in "sum by (x) (y)"."""
    return _text_at(found, index + 1) in ("by", "without")


def selectors(expression):
    return [selector for _, selector in _selectors(tokens(expression))]


def groupings(expression):
    """Groupings and their metrics: by and without apply to the brackets beside them, on and ignoring to all metrics;
    group_left names labels of the metrics on its right, group_right of those on its left."""
    found = tokens(expression)
    places = _selectors(found)
    result = []
    for index, token in enumerate(found):
        if token.text not in _GROUPERS or _text_at(found, index + 1) != "(":
            continue
        end = _end_of_group(found, index + 1)
        labels = [part.text for part in found[index + 2:end] if part.kind == "name"]
        first, last = 0, len(found)
        if token.text in ("by", "without"):
            if _text_at(found, end + 1) != "(":
                raise BadExpression(f"write {token.text} (...) before what it groups, in: {expression}")
            first, last = end + 1, _end_of_group(found, end + 1)
        elif token.text == "group_left":
            first = end + 1
        elif token.text == "group_right":
            last = index
        result.append(Grouping(labels, [selector.name for place, selector in places if first <= place <= last]))
    return result


def _split(found):
    """The operands of and, or and unless, outside of brackets."""
    parts, depth, index = [[]], 0, 0
    while index < len(found):
        text = found[index].text
        depth += (text in _OPENING) - (text in _CLOSING)
        if depth == 0 and text in _SETS:
            parts.append([])
            while _text_at(found, index + 1) in ("on", "ignoring"):
                index = _end_of_group(found, index + 2)
        else:
            parts[-1].append(found[index])
        index += 1
    return parts


def operands(expression):
    """The operands of an alert's comparisons: these series exist even without a problem."""
    result = []
    for part in _split(tokens(expression)):
        cut, depth = len(part), 0
        for index, token in enumerate(part):
            depth += (token.text in _OPENING) - (token.text in _CLOSING)
            if depth == 0 and token.text in _COMPARISONS:
                cut = index
                break
        result.append(" ".join(token.text for token in part[:cut]))
    return result
