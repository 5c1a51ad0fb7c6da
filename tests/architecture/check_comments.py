"""Comments that begin with a word like "Of" or "Who"."""

import re

import rules
from tree import Violation, line_of

_COMMENT = re.compile(rf"^[ \t]*(?://+|#+)[ \t]*(?:{'|'.join(rules.OPENINGS)})\b", re.MULTILINE)


def _is_commented(tree, path):
    return path.endswith(tuple(rules.COMMENTED_SUFFIXES)) or tree.text(path).startswith("#!")


def check_openings(tree):
    for path in tree.paths:
        if _is_commented(tree, path):
            for found in _COMMENT.finditer(tree.text(path)):
                yield Violation(path, line_of(tree.text(path), found.start() + len(found[0]) - 1),
                                f"a comment line begins with {', '.join(rules.OPENINGS)}",
                                "begin with a named thing, or a noun phrase that stands alone")


CHECKS = [check_openings]
