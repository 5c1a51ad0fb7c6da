"""docs/ERRORS.md: every reason with which a call can be refused. docs/WORKLOADS.md: how a completion can fail."""

import collections
import re
import textwrap

from .markers import between
from .problem import Problem

Reason = collections.namedtuple("Reason", "name number code ntstatus sentence advice")

_LIST = "base/error_reasons.inc"
_TEXT = r'"((?:[^"\\]|\\.)*)"'
# RNICD_REASON(NAME, number, kCode, kNtStatus, "sentence",
#              "advice")
_ROW = re.compile(rf"^RNICD_REASON\((\w+), (\d+), k(\w+), k(\w+), {_TEXT},\n +{_TEXT}\)$")
_NTSTATUS = re.compile(r"^\s*k(\w+) = (0x[0-9A-Fa-f]{8}),", re.MULTILINE)
_SECTION = re.compile(r"^// (.+)\.$")
_FLAG = re.compile(r"^ABSL_FLAG\(\s*[\w:]+,\s*(max_\w+),", re.MULTILINE)


def _upper_snake(camel):
    return re.sub(r"(?<!^)(?=[A-Z])", "_", camel).upper()


def parse_reasons(text):
    """Sections of rows: [(title, [Reason])]."""
    sections = []
    title = None
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""]):
        if line.startswith("RNICD_REASON"):
            row = _ROW.match(f"{line}\n{following}")
            if not row:
                raise Problem(f"{_LIST}: cannot read: {line}")
            if not row[6].strip():
                raise Problem(f"{_LIST}: {row[1]} has no advice")
            if title is None:
                raise Problem(f"{_LIST}: {row[1]} is below no heading comment")
            if not sections or sections[-1][0] != title:
                sections.append((title, []))
            sections[-1][1].append(Reason(*row.groups()))
        elif _SECTION.match(line):
            title = _SECTION.match(line)[1]
    return sections


# RNICD_COMPLETION(kOperation, REASON)
_OUTCOME = re.compile(r"^RNICD_COMPLETION\(k(\w+), (\w+)\)$", re.MULTILINE)


def _spaced(camel):
    """FastRegister -> fast register"""
    return re.sub(r"(?<!^)(?=[A-Z])", " ", camel).lower()


def _completions_table(repo, reasons, values):
    """The ways in which a completion can fail, with the operations that each can end."""
    operations = {}
    for operation, reason in _OUTCOME.findall((repo / "base/ndk/completion_outcomes.inc").read_text()):
        if reason not in reasons:
            raise Problem(f"base/ndk/completion_outcomes.inc names {reason}, which {_LIST} does not have")
        operations.setdefault(reason, []).append(_spaced(operation))
    lines = ["| `ntstatus` | `reason` | Operations | Meaning |", "|---|---|---|---|"]
    for name, of in operations.items():
        reason = reasons[name]
        status = f"`STATUS_{_upper_snake(reason.ntstatus)}` ({values[reason.ntstatus]})"
        lines.append(f"| {status} | `{name}` | {', '.join(of)} | {reason.sentence} |")
    return "\n".join(lines) + "\n"


def advice(reason, flags):
    """What to do; for a limit with the flag of the daemon that sets it for the node."""
    flag = f"max_{reason.name.removeprefix('QUOTA_').lower()}"
    return f"{reason.advice}. `--{flag}`" if reason.name.startswith("QUOTA_") and flag in flags else reason.advice


def _tables(sections, values, flags):
    """A table for each section of the list, and the values of NTSTATUS."""
    lines = []
    for title, reasons in sections:
        lines += [f"## {title}", "", "| Reason | Codes | Meaning | Do |", "|---|---|---|---|"]
        for reason in reasons:
            if reason.ntstatus not in values:
                raise Problem(f"{_LIST}: {reason.name} names k{reason.ntstatus}, which base/ntstatus.h does not have")
            codes = f"`{_upper_snake(reason.code)}`<br>`STATUS_{_upper_snake(reason.ntstatus)}`"
            lines.append(f"| `{reason.name}`<br>{reason.number} | {codes} | {reason.sentence} | {advice(reason, flags)} |")
        lines.append("")
    used = sorted({reason.ntstatus for _, reasons in sections for reason in reasons}, key=values.get)
    listed = ", ".join(f"{_upper_snake(name)} {values[name]}" for name in used)
    lines += ["## NTSTATUS values", "", *textwrap.wrap(f"{listed}.", 120)]
    return "\n".join(lines) + "\n"


# A word in backticks that looks like a reason, and those that are none.
_LOOKS_LIKE_ONE = re.compile(r"`([A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+)`")
NO_REASONS = {"DEADLINE_EXCEEDED", "RNICD_GRANT", "SOCK_SEQPACKET"}


def check_names(text, reasons):
    """Checks that what looks like a reason in sentences is one, and that each exception is needed."""
    named = set(_LOOKS_LIKE_ONE.findall(text))
    for name in sorted(named - set(reasons) - NO_REASONS):
        raise Problem(f"docs/ERRORS.md: {name} is no reason")
    for name in sorted(NO_REASONS - named):
        raise Problem(f"docs/ERRORS.md does not name {name}, which scripts/pages/errors_page.py excepts")


def make(repo):
    sections = parse_reasons((repo / _LIST).read_text())
    reasons = {reason.name: reason for _, rows in sections for reason in rows}
    values = dict(_NTSTATUS.findall((repo / "base/ntstatus.h").read_text()))
    flags = [flag for path in sorted((repo / "daemon/app").rglob("*.cc")) for flag in _FLAG.findall(path.read_text())]
    if not flags:
        raise Problem("daemon/app declares no limit as ABSL_FLAG(..., max_...)")
    page, guide = repo / "docs/ERRORS.md", repo / "docs/WORKLOADS.md"
    written = page.read_text()
    by_hand = between(page.name, written, "reasons", "")
    check_names(by_hand + "".join(reason.advice for reason in reasons.values()), reasons)
    return {page: between("docs/ERRORS.md", written, "reasons", _tables(sections, values, flags)),
            guide: between("docs/WORKLOADS.md", guide.read_text(), "completions",
                           _completions_table(repo, reasons, values))}
