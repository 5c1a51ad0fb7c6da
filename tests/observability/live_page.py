"""The page of a running daemon beside the catalogue."""

import re
import subprocess

_TYPE = re.compile(r"^# TYPE (\S+) (\S+)$", re.MULTILINE)
_SAMPLE = re.compile(r"^([A-Za-z_:][\w:]*)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
_LABEL = re.compile(r'(\w+)="(?:[^"\\]|\\.)*"')
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count")}


def promtool_says(page):
    """Empty when promtool finds nothing."""
    result = subprocess.run(["promtool", "check", "metrics"], input=page, capture_output=True, text=True, check=False,
                            timeout=60)
    said = (result.stdout + result.stderr).strip()
    return said or ("" if result.returncode == 0 else f"promtool ends with {result.returncode}")


def _check_metric(metric, kind, samples, say):
    if kind != metric.kind:
        say(f"{metric.name} is a {kind} on the page, and a {metric.kind} in the catalogue")
    suffixes = _SUFFIXES.get(metric.kind, ("",))
    for suffix in suffixes:
        found = [labels for name, labels in samples if name == metric.name + suffix]
        if not found:
            say(f"{metric.name}{suffix} has no sample on the page")
        wanted = {*metric.labels, *(["le"] if suffix == "_bucket" else [])}
        for labels in found:
            if labels != wanted:
                say(f"{metric.name}{suffix} has the labels {sorted(labels)}, and should have {sorted(wanted)}")
                break


def check(page, metrics, absent, say):
    """Says what is on the page and not in the catalogue, or the other way round, but for the `absent` ones."""
    said = promtool_says(page)
    if said:
        say(f"promtool check metrics: {said}")
    types = dict(_TYPE.findall(page))
    samples = {(name, frozenset(_LABEL.findall(labels))) for name, labels, _ in _SAMPLE.findall(page)}
    declared = {metric.name: metric for metric in metrics}
    for name in sorted(set(types) - set(declared)):
        say(f"{name} is on the page, and not in the catalogue")
    for name, metric in declared.items():
        shown = any(sample.startswith(name) for sample, _ in samples) and name in types
        if name in absent:
            if shown:
                say(f"{name} is on the page: delete its line in not_on_the_page.txt")
        elif name not in types:
            say(f"{name} is not on the page")
        else:
            _check_metric(metric, types[name], samples, say)
    for name in sorted(set(absent) - set(declared)):
        say(f"not_on_the_page.txt: no metric is called {name}")
