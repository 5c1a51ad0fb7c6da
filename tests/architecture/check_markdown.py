"""Links and anchors of the pages, pages that sources name, and the number of words in all pages."""

import collections
import posixpath
import re

import rules
from tree import Violation, folder_of, line_of

_FENCE = re.compile(r"^( *)(```|~~~).*?^\1\2[^\n]*$", re.MULTILINE | re.DOTALL)
_CODE = re.compile(r"(?<!`)(`+)(?!`)[^\n]+?(?<!`)\1(?!`)")
_LINK = re.compile(r"\]\(([^()\s]+)(?: \"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(.+?)#* *$", re.MULTILINE)
_NAMED = re.compile(r"(?<![\w/.-])(?:/usr/share/doc/rnicd/|(?:\.\./)+)?(docs/[\w/-]+\.md)(?:#([\w-]+))?")


def _blank(found):
    return re.sub(r"[^\n]", " ", found[0])


def _anchors(text):
    """The anchors that a page's headings have on the usual forges."""
    counts, anchors = collections.Counter(), set()
    for heading in _HEADING.findall(_FENCE.sub(_blank, text)):
        words = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
        anchor = re.sub(r"[^\w\- ]", "", words).replace(" ", "-")
        anchors.add(anchor if not counts[anchor] else f"{anchor}-{counts[anchor]}")
        counts[anchor] += 1
    return anchors


class _Targets:
    """The files, folders and anchors that a link may lead to."""

    def __init__(self, tree):
        self._tree = tree
        self._files = set(tree.paths)
        self._folders = {""}
        for path in tree.paths:
            folder = folder_of(path)
            while folder not in self._folders:
                self._folders.add(folder)
                folder = folder_of(folder)
        self._anchors = {}

    def missing(self, path, anchor):
        """What is missing of path#anchor; empty if nothing is."""
        if path not in self._files and path not in self._folders:
            return f"{path} does not exist"
        if not anchor or not path.endswith(".md"):
            return ""
        if path not in self._anchors:
            self._anchors[path] = _anchors(self._tree.text(path))
        return "" if anchor in self._anchors[path] else f"{path} has no heading #{anchor}"


def check_links(tree):
    """Relative links of pages, and the pages of docs wherever a file names one."""
    targets = _Targets(tree)
    for path in tree.paths:
        text = tree.text(path)
        if path.endswith(".md"):
            plain = _CODE.sub(_blank, _FENCE.sub(_blank, text))
            for found in _LINK.finditer(plain):
                target, _, anchor = found[1].partition("#")
                if not re.match(r"[a-z]+:", target):
                    place = posixpath.normpath(posixpath.join(folder_of(path), target)) if target else path
                    if missing := targets.missing("" if place == "." else place, anchor):
                        yield Violation(path, line_of(text, found.start()), f"a dead link: {missing}", "mend the link")
        if "docs/" in text and path not in rules.LINKS_NOT_CHECKED:
            for found in _NAMED.finditer(text):
                if missing := targets.missing(found[1], found[2]):
                    yield Violation(path, line_of(text, found.start()), f"a page is named, but {missing}", "name another")


def check_words_of_pages(tree):
    path = rules.WORDS_RATCHET
    numbers = [line for line in tree.text(path).splitlines() if line.strip() and not line.startswith("#")]
    if len(numbers) != 1 or not numbers[0].isdigit():
        yield Violation(path, 1, "this file has one number: the words that all pages may have", "restore it")
        return
    words = sum(len(tree.text(page).split()) for page in tree.with_suffix(".md"))
    if words > int(numbers[0]):
        yield Violation(path, 1, f"all pages have {words} words, the limit is {numbers[0]}",
                        "cut what another page has already: the number may only fall")


CHECKS = [check_links, check_words_of_pages]
