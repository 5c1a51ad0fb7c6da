"""client/c/rnicd.h: its example, a program that is built and run, and the reasons of failures."""

import textwrap

from . import errors_page
from .markers import between

_HEADER = "client/c/rnicd.h"


def _commented(text):
    return "".join(f"//   {line}".rstrip() + "\n" for line in text.splitlines())


def _reasons(sections):
    """Enumerators; the last has no comma, for C++ of before 2011."""
    blocks = []
    for title, reasons in sections:
        entries = []
        for reason in reasons:
            comment = textwrap.wrap(reason.sentence, 120, initial_indent="  // ", subsequent_indent="  // ")
            entries.append("\n".join([*comment, f"  RNICD_REASON_{reason.name} = {reason.number}"]))
        blocks.append(f"\n  // --- {title}\n" + ",\n".join(entries))
    return ",\n".join(blocks).removeprefix("\n") + "\n"


def make(repo):
    path = repo / _HEADER
    text = between(_HEADER, path.read_text(), "hello",
                   _commented((repo / "examples/c/hello.c").read_text()) + "// ")
    sections = errors_page.parse_reasons((repo / "base/error_reasons.inc").read_text())
    return {path: between(_HEADER, text, "reasons", _reasons(sections) + "  // ")}
