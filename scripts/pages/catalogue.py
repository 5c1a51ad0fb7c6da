"""The daemon's metrics, as declared in daemon/metrics/catalogue.inc and labels.inc."""

import collections
import re

from .problem import Problem

Metric = collections.namedtuple("Metric", "name kind unit labels help section")
Label = collections.namedtuple("Label", "name holds bound")

_TEXT = r'"((?:[^"\\]|\\.)*)"'
# RNICD_METRIC(constant, kind, "name", "unit", "label,label", "help")
_METRIC = re.compile(rf"^RNICD_METRIC\(\w+, (\w+), {_TEXT}, {_TEXT}, {_TEXT}, {_TEXT}\)$")
# RNICD_LABEL("label", "what it holds", "what bounds it")
_LABEL = re.compile(rf"^RNICD_LABEL\({_TEXT}, {_TEXT}, {_TEXT}\)$")
_SECTION = re.compile(r"^// --- (.+) ---$")
KINDS = ("counter", "gauge", "histogram")


def _plain(text):
    return re.sub(r"\\(.)", r"\1", text)


def parse_metrics(text):
    """Every metric of catalogue.inc, in its order."""
    metrics, section = [], None
    for line in text.splitlines():
        if _SECTION.match(line):
            section = _SECTION.match(line)[1]
        elif line.startswith("RNICD_METRIC"):
            row = _METRIC.match(line)
            if not row or row[1] not in KINDS or section is None:
                raise Problem(f"daemon/metrics/catalogue.inc: cannot read: {line}")
            labels = tuple(label for label in row[4].split(",") if label)
            metrics.append(Metric(row[2], row[1], row[3], labels, _plain(row[5]), section))
    return metrics


def parse_labels(text):
    """Every label of labels.inc, in its order."""
    labels = []
    for line in text.splitlines():
        if line.startswith("RNICD_LABEL"):
            row = _LABEL.match(line)
            if not row:
                raise Problem(f"daemon/metrics/labels.inc: cannot read: {line}")
            labels.append(Label(*(_plain(part) for part in row.groups())))
    return labels


def _check(metrics, labels):
    """Checks that names are unique, and that the two files agree on the labels."""
    for rows in (metrics, labels):
        names = [row.name for row in rows]
        for name in sorted({name for name in names if names.count(name) > 1}):
            raise Problem(f"daemon/metrics: {name} is declared twice")
    explained = {label.name for label in labels}
    used = {label for metric in metrics for label in metric.labels}
    for name in sorted(used - explained):
        raise Problem(f"daemon/metrics/labels.inc does not explain the label {name} of catalogue.inc")
    for name in sorted(explained - used):
        raise Problem(f"daemon/metrics/labels.inc explains the label {name}, which no metric has")


def read(repo):
    """The metrics and the labels of the repository."""
    folder = repo / "daemon" / "metrics"
    metrics = parse_metrics((folder / "catalogue.inc").read_text())
    labels = parse_labels((folder / "labels.inc").read_text())
    _check(metrics, labels)
    return metrics, labels
