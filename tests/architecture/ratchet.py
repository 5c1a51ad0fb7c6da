"""Exceptions from a limit, in a file of "number key" lines: they may only shrink, and each number is exact."""

from tree import Violation


def _listed(tree, path):
    """{key: (line of the file, number)}."""
    listed = {}
    for line_number, line in enumerate(tree.text(path).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            number, _, key = line.strip().partition(" ")
            listed[key] = (line_number, int(number))
    return listed


def compare(tree, path, offenders, unit, remedy):
    """Compares {key: (path, line, number, limit)} of what is above a limit with the exceptions in the file `path`."""
    listed = _listed(tree, path)
    for key, (place, line, number, limit) in offenders.items():
        if key not in listed:
            yield Violation(place, line, f"{key} has {number} {unit}, the limit is {limit}", remedy)
        elif number > listed[key][1]:
            yield Violation(place, line, f"{key} grew from {listed[key][1]} to {number} {unit}",
                            f"it may only shrink: {remedy}")
    for key, (line, number) in listed.items():
        if key not in offenders:
            yield Violation(path, line, f"{key} is within the limit or gone", "delete the line")
        elif offenders[key][2] < number:
            yield Violation(path, line, f"{key} has shrunk to {offenders[key][2]} {unit}", "write the new number")
