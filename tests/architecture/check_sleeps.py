"""Sleeps of tests, which may only become fewer: a test waits for an event, moves a clock of its own, or opens a gate."""

import re

import ratchet
import rules
from tree import is_test, is_under, line_of

# A sleep of 0 lets others run, and is none.
_SLEEP = re.compile(r"\b(?:sleep_for|sleep_until|usleep|nanosleep|time\.sleep|asyncio\.sleep)\((?!0\))")


def _is_counted(path):
    return path.endswith((".cc", ".h", ".py")) and is_test(path) and not is_under(path, rules.SLEEPS_FREE)


def check_sleeps(tree):
    offenders = {}
    for path in filter(_is_counted, tree.paths):
        found = list(_SLEEP.finditer(tree.text(path)))
        if found:
            offenders[path] = (path, line_of(tree.text(path), found[-1].start()), len(found), 0)
    yield from ratchet.compare(tree, rules.SLEEPS_RATCHET, offenders, "sleeps", "wait for an event, or move a clock")


CHECKS = [check_sleeps]
