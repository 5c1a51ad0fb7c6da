#!/usr/bin/env python3
"""Writes the manual pages of the C interface from the comments of its header: rnicd.7, and a page in section 3 for each
function, or for a few that one comment describes.

usage: c_manual.py --header FILE --version VERSION --out FOLDER
"""

import argparse
import pathlib
import re
import textwrap
from dataclasses import dataclass, field

# Where a comment names them, a section of the page begins.
_LABELS = {"Errors": "ERRORS", "Lifetime": "LIFETIME", "Threads": "THREADS", "Source": "SOURCE"}


@dataclass
class Declaration:
    """A comment with what stands below it, up to the next comment or empty line outside of braces."""

    section: str
    comment: str
    text: str
    functions: list = field(default_factory=list)

    @property
    def types(self):
        return re.findall(r"^(?:struct|enum) (\w+) \{", self.text, re.M)

    @property
    def flags(self):
        return re.findall(r"^#define (RNICD_\w+) 0x", self.text, re.M)


def _without_slashes(lines):
    return [re.sub(r"^ *// ?", "", line) for line in lines]


def _blocks(lines):
    """The header's paragraphs: lines of a comment, and lines below it."""
    comment, body, depth = [], [], 0
    for line in lines + [""]:
        if depth == 0 and (line.startswith("//") and body or not line):
            yield comment, body
            comment, body = [], []
        if depth == 0 and line.startswith("//"):
            comment.append(line)
        elif line:
            body.append(line)
            depth += line.count("{") - line.count("}")
        elif depth:
            body.append(line)


def _functions(text):
    return re.findall(r"^[\w* ]*?\b(rnicd_\w+)\((?!\*)", re.sub(r"\{.*?\n\}", "", text, flags=re.S), re.M)


def parse(header):
    """The comment at the top, and the declarations."""
    top, _, rest = header.partition("#include <stddef.h>")
    rest = rest.partition("#pragma GCC visibility push(default)")[2].partition("#endif")[2]
    rest = rest.partition("#ifdef __GNUC__\n#pragma GCC visibility pop")[0]
    section, declarations = "", []
    for comment, body in _blocks(rest.splitlines()):
        if comment and (heading := re.fullmatch(r"// --- (.*?) -+", comment[0])):
            section, comment = heading[1], comment[1:]
        text = "\n".join(body)
        if text:
            words = " ".join(_without_slashes(comment)).strip()
            declarations.append(Declaration(section, words, text, _functions(text)))
    return top, declarations


def _roff(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "")
    return re.sub(r"(?m)^([.'])", r"\\&\1", text)


def _filled(text):
    return _roff(re.sub(r"\s+", " ", text).strip())


def _verbatim(text):
    return ".EX\n" + _roff("\n".join(line.rstrip() for line in text.splitlines())) + "\n.EE\n"


def _title(name, section, version):
    source = '.\\" Generated from rnicd.h by scripts/pages/c_manual.py.\n'
    return f'{source}.TH {name.upper()} {section} "" "rnicd {version}" "rnicd"\n'


def _first_sentence(text):
    sentence = re.match(r"(.*?[^.])(?:\.(?: |$)|: |$)", text, re.S)[1]
    return sentence[0].lower() + sentence[1:]


def split_labels(comment):
    """The description, and a text for each label."""
    parts = re.split(rf"(?:^| )({'|'.join(_LABELS)}): +", comment)
    return parts[0], dict(zip(parts[1::2], parts[2::2]))


def _used(page, declarations):
    """The types that the prototypes name, and flags of the same part of the header."""
    words = set(re.findall(r"\w+", page.text))
    types = [other for other in declarations if words & set(other.types)]
    named = set(re.findall(r"\b(RNICD_(?:\w+_)?) ?flags", " ".join(other.text for other in types)))

    def belongs(flag):
        # Those of sessions have no prefix of their own.
        without_prefix = "RNICD_" in named and flag.count("_") == 1
        return "flags" in words or without_prefix or any(flag.startswith(name) for name in named - {"RNICD_"})

    flags = [other for other in declarations if other.section == page.section and any(map(belongs, other.flags))]
    return [other for other in declarations if other in types or other in flags]


def function_page(page, declarations, version):
    description, labels = split_labels(page.comment)
    text = _title(page.functions[0], 3, version)
    text += f".SH NAME\n{', '.join(page.functions)} \\- {_filled(_first_sentence(description))}\n"
    text += ".SH SYNOPSIS\n" + _verbatim(f"#include <rnicd.h>\n\n{page.text}")
    text += f".SH DESCRIPTION\n{_filled(description)}\n"
    if page.text.startswith("int "):
        text += ".SH RETURN VALUE\n0 or more on success, else a negative errno value (see\n.BR rnicd (7)).\n"
    for label, body in labels.items():
        text += f".SH {_LABELS[label]}\n{_filled(body)}\n"
    used = _used(page, declarations)
    if used:
        parts = []
        for other in used:
            comment = "\n".join(textwrap.wrap(other.comment, 100, initial_indent="// ", subsequent_indent="// "))
            parts.append(f"{comment}\n{other.text}".strip())
        text += ".SH TYPES\n" + _verbatim("\n\n".join(parts))
    return text + ".SH SEE ALSO\n.BR rnicd (7)\n"


def _chapters(lines):
    """Name and lines of each chapter of the comment at the top."""
    chapters = []
    for line in lines:
        begin = re.match(r"([A-Z][\w ]{2,11}?) {2,}(\S.*)", line)
        if begin:
            chapters.append((begin[1], [begin[2]]))
        elif chapters:
            chapters[-1][1].append(line.strip())
    return chapters


def _chapter(name, lines):
    """Lines that begin with an errno value begin an entry of a list."""
    text = f".SH {name.upper()}\n"
    paragraph, in_list = [], False
    for line in [*lines, ""]:
        entry = re.match(r"(-E[A-Z0-9]+) {2,}(.*)", line)
        ends = in_list and re.match(r"A function's ", line)
        if entry or ends or not line:
            text += (_filled(" ".join(paragraph)) + "\n") if paragraph else ""
            paragraph = [entry[2]] if entry else [line]
            text += f".TP\n.B {_roff(entry[1])}\n" if entry else ".PP\n" if ends else ""
            in_list = bool(entry)
        else:
            paragraph.append(line)
    return text


def overview_page(top, declarations, version):
    introduction, example, chapters = re.split(r"// <!-- hello:(?:begin|end) -->\n", top)
    introduction = " ".join(_without_slashes(introduction.splitlines()[1:]))
    summary, introduction = re.match(r"rnicd\.h: (.*?)\. (.*?) This program,", introduction).groups()
    text = _title("rnicd", 7, version)
    text += f".SH NAME\nrnicd \\- {_filled(summary)}\n"
    text += ".SH SYNOPSIS\n" + _verbatim("#include <rnicd.h>\n\ncc program.c $(pkg-config --cflags --libs librnicd)")
    text += f".SH DESCRIPTION\n{_filled(introduction)}\n"
    for name, body in _chapters(_without_slashes(chapters.splitlines())):
        text += _chapter(name, body)
    text += ".SH FUNCTIONS\n"
    section = None
    for page in (other for other in declarations if other.functions):
        if page.section != section:
            section = page.section
            text += f".SS {_roff(section)}\n"
        for name in page.functions:
            text += f".TP\n.BR {name} (3)\n{_filled(_first_sentence(split_labels(page.comment)[0]))}\n"
    text += ".SH EXAMPLE\n" + _verbatim("\n".join(_without_slashes(example.splitlines())))
    return text + ".SH SEE ALSO\n.BR rnicctl (1),\n.BR rnicd (8)\n"


def pages(header, version):
    """Path and text of each page."""
    top, declarations = parse(header)
    yield "man7/rnicd.7", overview_page(top, declarations, version)
    for page in (other for other in declarations if other.functions):
        if not page.comment:
            raise SystemExit(f"rnicd.h says nothing of {page.functions[0]}, so it has no manual page")
        yield f"man3/{page.functions[0]}.3", function_page(page, declarations, version)
        for name in page.functions[1:]:
            yield f"man3/{name}.3", f".so man3/{page.functions[0]}.3\n"


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--header", type=pathlib.Path, required=True)
    parser.add_argument("--version", required=True)
    parser.add_argument("--out", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    for path, text in pages(arguments.header.read_text(), arguments.version):
        (arguments.out / path).parent.mkdir(parents=True, exist_ok=True)
        (arguments.out / path).write_text(text)


if __name__ == "__main__":
    main()
