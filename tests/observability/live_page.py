"""Compares the metrics page of a running daemon with the catalogue."""

import re
import subprocess

_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}


def promtool_findings(page):
    """The output of promtool; empty if there are no findings."""
    result = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False,
                            timeout=60)
    findings = (result.stdout + result.stderr).strip()
    return findings or ("" if result.returncode == 0 else f"promtool ends with {result.returncode}")


def _check_metric(metric, kind, samples, report):
    if kind != metric.kind:
        report(f"{metric.name} is a {kind} on the page, and a {metric.kind} in the catalogue")
    suffixes = _SUFFIXES.get(metric.kind, ("",))
    for suffix in suffixes:
        found = [labels for name, labels in samples if name == metric.name + suffix]
        if not found:
            report(f"{metric.name}{suffix} has no sample on the page")
        wanted = {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
        for labels in found:
            if labels != wanted:
                report(f"{metric.name}{suffix} has the labels {sorted(labels)}, and should have {sorted(wanted)}")
                break


def check(page, metrics, absent, report):
    """Reports differences between the page and the catalogue, except for the `absent` metrics."""
    findings = promtool_findings(page)
    if findings:
        report(f"promtool check metrics: {findings}")
    types = dict(_TYPE.findall(page))
    samples = {(name, frozenset(label for label, _ in _LABEL.findall(labels))) for name, labels, _ in _SAMPLE.findall(page)}
    declared = {metric.name: metric for metric in metrics}
    for name in sorted(set(types) - set(declared)):
        report(f"{name} is on the page, and not in the catalogue")
    for name, metric in declared.items():
        shown = any(sample.startswith(name) for sample, _ in samples) and name in types
        if name in absent:
            if shown:
                report(f"{name} is on the page: delete its line in not_on_the_page.txt")
        elif name not in types:
            report(f"{name} is not on the page")
        else:
            _check_metric(metric, types[name], samples, report)
    for name in sorted(set(absent) - set(declared)):
        report(f"not_on_the_page.txt: no metric is called {name}")


def _words(text):
    return set(re.findall(r"[a-z0-9_]+", text.lower()))


def check_values(page, labels, folder, report):
    """Reports values of labels with a fixed set of them that neither their text names nor the document that it names.

    A counter is on the page from the start with each of its values, so that the page has all that there are.
    """
    known = {}
    for label in labels:
        if label.bound.startswith("fixed set"):
            documents = [(folder / name).read_text() for name in re.findall(r"docs/[A-Z]+\.md", label.holds)]
            known[label.name] = _words(" ".join([label.holds, *documents]))
    found = {pair for _, text, _ in _SAMPLE.findall(page) for pair in _LABEL.findall(text)}
    for label, value in sorted(found):
        if label in known and not _words(value) <= known[label]:
            report(f'{label}="{value}" is on the page, and not among the values in daemon/metrics/labels.inc')
