"""How long files and functions are, and the ratchet: listed offenders may only shrink."""

import ast
import re

import ratchet
import rules
from tree import line_of, without_comments_and_strings

_CONTAINER = re.compile(r"\b(namespace|class|struct|union|enum)\b|\bextern\s*$")
_DATA = re.compile(r"=\s*$|\breturn\s*$")


def _opens_container(head):
    """Whether a brace after this text opens a namespace or a type; a function has a parameter list first."""
    plain = re.sub(r"alignas\([^)]*\)|RNICD_\w+\([^)]*\)|<[^<>]*>", "", head)
    return bool(_CONTAINER.search(plain)) and "(" not in plain


def _name_of(head):
    """"TEST(Suite, Name)" or the word before the parameter list."""
    test = re.search(r"\b(TEST\w*|BENCHMARK\w*)\s*\(([^)]*)\)", head)
    if test:
        return f"{test[1]}({' '.join(test[2].split())})"
    named = re.search(r"(~?[\w:]+|operator[^\s(]+)\s*\(", head)
    return named[1] if named else "unnamed"


def cpp_functions(text):
    """(name, first line, number of lines) of each function body. An estimate by braces; macros may fool it."""
    code = re.sub(r"^\s*#.*(?:\\\n.*)*$", lambda found: re.sub(r"[^\n]", " ", found[0]),
                  without_comments_and_strings(text), flags=re.MULTILINE)
    head_start, depth_in_function, start, name = 0, 0, 0, ""
    stack = []
    for found in re.finditer(r"[{};]", code):
        char, offset = found[0], found.start()
        if depth_in_function:
            depth_in_function += {"{": 1, "}": -1, ";": 0}[char]
            if depth_in_function == 0:
                lines = line_of(code, offset) - line_of(code, start) + 1
                # A member initializer list continues after its braces.
                if not re.match(r"\s*[,{;]", code[offset + 1:]):
                    head_start = offset + 1
                if name:
                    yield name, line_of(text, start), lines
        elif char == "{":
            head = code[head_start:offset]
            if _opens_container(head):
                stack.append(offset)
                head_start = offset + 1
            else:
                depth_in_function, start = 1, offset
                name = "" if _DATA.search(head) or "(" not in head else _name_of(head)
        else:
            if char == "}" and stack:
                stack.pop()
            head_start = offset + 1


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            yield node.name, node.lineno, node.end_lineno - node.lineno + 1


def shell_functions(text):
    for found in re.finditer(r"^(\w+)\(\) \{\n.*?^\}$", text, re.MULTILINE | re.DOTALL):
        yield found[1], line_of(text, found.start()), found[0].count("\n") + 1


def _functions(tree, path):
    text = tree.text(path)
    if path.endswith((".cc", ".h")):
        return cpp_functions(text)
    if path.endswith(".py") or text.startswith("#!/usr/bin/env python3"):
        return python_functions(text)
    if path.endswith(".sh") or text.startswith("#!/usr/bin/env bash"):
        return shell_functions(text)
    return []


def _is_sized(tree, path):
    return path.endswith(tuple(rules.SIZED_SUFFIXES)) or tree.text(path).startswith("#!")


def _offenders(tree):
    """{key: (path, line, length, limit)} of what is above a limit."""
    offenders = {}
    for path in tree.paths:
        if not _is_sized(tree, path):
            continue
        lines = tree.text(path).count("\n")
        if lines > rules.FILE_LINES_MAX and path not in rules.FILES_OF_ANY_LENGTH:
            offenders[path] = (path, 1, lines, rules.FILE_LINES_MAX)
        for name, line, length in _functions(tree, path):
            if length > rules.FUNCTION_LINES_MAX:
                offenders[f"{path} {name}"] = (path, line, length, rules.FUNCTION_LINES_MAX)
    return offenders


def check_sizes(tree):
    yield from ratchet.compare(tree, rules.RATCHET, _offenders(tree), "lines", "split it by what it does")


CHECKS = [check_sizes]
