"""Comments that begin with a word like "Of" or "Who", and the ratchet: their number may only fall."""

import re

import rules
from tree import Violation, line_of

_COMMENT = re.compile(rf"^[ \t]*(?://+|#+)[ \t]*(?:{'|'.join(rules.OPENINGS)})\b", re.MULTILINE)


def _is_commented(tree, path):
    return path.endswith(tuple(rules.COMMENTED_SUFFIXES)) or tree.text(path).startswith("#!")


def _found(tree):
    """"path:line" of each comment line that begins with one of the words."""
    return [f"{path}:{line_of(tree.text(path), found.start())}" for path in tree.paths if _is_commented(tree, path)
            for found in _COMMENT.finditer(tree.text(path))]


def _allowed(tree):
    """(line, number) in the ratchet file; a missing file allows none."""
    for number, line in enumerate(tree.text(rules.OPENINGS_RATCHET).splitlines(), 1):
        if line.strip() and not line.startswith("#"):
            return number, int(line)
    return 1, 0


def check_openings(tree):
    found, (line, allowed) = _found(tree), _allowed(tree)
    words = ", ".join(rules.OPENINGS)
    if len(found) > allowed:
        shown = ", ".join(found[:rules.OPENINGS_SHOWN]) + (", ..." if len(found) > rules.OPENINGS_SHOWN else "")
        yield Violation(rules.OPENINGS_RATCHET, line,
                        f"{len(found)} comment lines begin with {words}; allowed: {allowed}",
                        f"begin with a named thing, or a noun phrase that stands alone: {shown}")
    elif len(found) < allowed:
        yield Violation(rules.OPENINGS_RATCHET, line, f"only {len(found)} comment lines begin with {words}; "
                        f"allowed: {allowed}", f"write {len(found)}")


CHECKS = [check_openings]
