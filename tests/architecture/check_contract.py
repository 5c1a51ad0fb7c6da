"""The wire: error reasons and NTSTATUS values, each listed in two places; a test for each reason; comments."""

import re

import rules
from tree import Violation, is_test, is_under, line_of

_LISTED = re.compile(r"^RNICD_REASON\((\w+),\s*(\d+),", re.MULTILINE)
_ON_WIRE = re.compile(r"^\s*ERROR_REASON_(\w+) = (\d+);", re.MULTILINE)


def _reasons(pattern, text):
    """{name: (number, line)}"""
    return {found[1]: (int(found[2]), line_of(text, found.start(1))) for found in pattern.finditer(text)}


def check_reasons_equal(tree):
    listed = _reasons(_LISTED, tree.text(rules.REASONS_LIST))
    on_wire = _reasons(_ON_WIRE, tree.text(rules.REASONS_PROTO))
    on_wire.pop("UNSPECIFIED", None)
    for name, (number, line) in listed.items():
        if name not in on_wire:
            yield Violation(rules.REASONS_LIST, line, f"{name} is not in {rules.REASONS_PROTO}",
                            "add it with the same number")
        elif on_wire[name][0] != number:
            yield Violation(rules.REASONS_LIST, line, f"{name} is {number} here and {on_wire[name][0]} on the wire",
                            "numbers on the wire never change: mend the list")
    for name, (_, line) in on_wire.items():
        if name not in listed:
            yield Violation(rules.REASONS_PROTO, line, f"{name} is not in {rules.REASONS_LIST}",
                            "add it with the same number")


_NTSTATUS_LISTED = re.compile(r"^\s*k(\w+) = (0x[0-9A-Fa-f]{8}),", re.MULTILINE)
_NTSTATUS_ON_WIRE = re.compile(r"^\s*NT_STATUS_(\w+) = (-?\d+);", re.MULTILINE)


def check_ntstatus_equal(tree):
    """The enum of the wire is signed: its numbers are those of the list as 32-bit two's complement."""
    on_wire = {found[1]: int(found[2]) % 2**32 for found in _NTSTATUS_ON_WIRE.finditer(tree.text(rules.REASONS_PROTO))}
    text = tree.text(rules.NTSTATUS_LIST)
    for found in _NTSTATUS_LISTED.finditer(text):
        name = re.sub(r"(?<!^)(?=[A-Z])", "_", found[1]).upper()
        if on_wire.pop(name, None) != int(found[2], 16):
            yield Violation(rules.NTSTATUS_LIST, line_of(text, found.start(1)),
                            f"{name} is not in {rules.REASONS_PROTO}, or has another value", "give both the same value")
    for name in on_wire:
        yield Violation(rules.REASONS_PROTO, 1, f"NT_STATUS_{name} is not in {rules.NTSTATUS_LIST}", "add it there")


def check_reasons_tested(tree):
    words = set()
    for path in tree.paths:
        if path.endswith((".cc", ".h", ".py")) and is_test(path) and not is_under(path, rules.REASONS_NOT_COUNTED):
            words.update(re.findall(r"\w+", tree.text(path)))
    for name, (_, line) in _reasons(_LISTED, tree.text(rules.REASONS_LIST)).items():
        if name not in words and f"ERROR_REASON_{name}" not in words:
            yield Violation(rules.REASONS_LIST, line, f"no test names {name}",
                            "write the test in which a call is refused so")


_BLOCK = re.compile(r"^\s*(message|service|enum|oneof) \w+ \{(?!.*\})")
_MEMBER = re.compile(r"^\s+(?:rpc (\w+)\(|(?:repeated |optional )?([\w.]+) (\w+) = \d+;)")


def _speaks_for_itself(type_name, name):
    """An id, or a message of ours whose own comment says what it is."""
    return name.endswith(("_id", "_ids")) or type_name[:1].isupper()


def check_proto_comments(tree):
    """A call or field has a comment above it or above its group, which a blank line ends. The comment of a message
    speaks for the first group in it; the comment of a service speaks for no call."""
    for path in tree.with_suffix(".proto"):
        spoken = False
        outside = []
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            member = _MEMBER.match(line)
            if line.strip().startswith("//"):
                spoken = True
            elif block := _BLOCK.match(line):
                outside.append(spoken)
                spoken = spoken and block[1] != "service"
            elif line.strip() == "}" and outside:
                spoken = outside.pop()
            elif not line.strip():
                spoken = False
            elif member and not spoken and (member[1] or not _speaks_for_itself(member[2], member[3])):
                yield Violation(path, number, f"{member[1] or member[3]} has no comment",
                                "say what it is: unit, range, meaning of zero; for a call also its errors")


_STATION = re.compile(r"^\| \d+ \| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
_STATIONS = re.compile(r"^(\d+) stations in (\d+) files", re.MULTILINE)


def check_stations(tree):
    path, text = rules.STATIONS_PAGE, tree.text(rules.STATIONS_PAGE)
    start = 0
    for counted in _STATIONS.finditer(text):
        rows = list(_STATION.finditer(text, start, counted.start()))
        start = counted.end()
        for row in rows:
            if not re.search(rf"^\S.*(?<![\w:]){re.escape(row[2])}\(", tree.text(row[1]), re.MULTILINE):
                yield Violation(path, line_of(text, row.start()), f"{row[2]} is not in {row[1]}", "follow the request again")
        found = (len(rows), len({row[1] for row in rows}))
        if found != (int(counted[1]), int(counted[2])):
            yield Violation(path, line_of(text, counted.start()), f"these are {found[0]} stations in {found[1]} files",
                            "write what is counted")


CHECKS = [check_reasons_equal, check_ntstatus_equal, check_reasons_tested, check_proto_comments, check_stations]
