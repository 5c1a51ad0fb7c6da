"""How many public methods and data members a class has, and the ratchets: listed offenders may only shrink."""

import re

import ratchet
import rules
from tree import is_test, line_of, without_comments_and_strings

# A class, struct, union or enum with a body; an enum, or a type without a name, has no methods of interest.
_TYPE = re.compile(
    r"^(?:template\b.*?\s)?(class|struct)\s+(?:alignas\([^)]*\)\s*|RNICD_\w+(?:\([^)]*\))?\s+)*(\w+)\b[^=(]*$", re.DOTALL)
_ACCESS = re.compile(r"^\s*(public|protected|private)\s*:(?!:)")
_NOT_A_METHOD = re.compile(r"^(?:friend|using|typedef|static_assert)\b|\boperator\b")
_NAME_AND_LIST = re.compile(r"(~?)(\w+)\s*\((?!\s*[*&])")


def _without_angles(text):
    """The text without template arguments, which may hold parentheses: std::function<void(int)>."""
    kept, depth = [], 0
    for index, char in enumerate(text):
        if char == "<" and (depth or re.search(r"\w\s*$", text[:index])):
            depth += 1
        elif char == ">" and depth and text[index - 1] != "-":
            depth -= 1
        elif not depth:
            kept.append(char)
    return "".join(kept)


def _is_method(member, type_name):
    """Whether the text before a member's body or semicolon declares a method; constructors and operators are none."""
    plain = re.sub(r"\balignas\([^)]*\)|\[\[[^\]]*\]\]", "", _without_angles(member)).strip()
    if _NOT_A_METHOD.search(plain):
        return False
    found = _NAME_AND_LIST.search(plain)
    if found is None or "=" in plain[:found.start()]:
        return False
    # A field with an annotation: int count_ RNICD_GUARDED_BY(mutex_).
    return not found[1] and found[2] != type_name and not found[2].startswith("RNICD_")


def _closing(code, start):
    """The offset of the brace that closes the one at `start`."""
    depth = 0
    for found in re.finditer(r"[{}]", code[start:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return start + found.start()
    return len(code)


def _members(code, start, end):
    """(text, offset, offset of the opening brace or None) of each declaration between two offsets."""
    first, brace, offset = start, None, start
    while offset < end:
        char = code[offset]
        if char == "{":
            brace = offset if brace is None else brace
            offset = _closing(code, offset)
            # An initializer list continues after its braces, a field or a type ends with a semicolon.
            if not re.match(r"\s*[,{;]", code[offset + 1:end]):
                yield code[first:brace], first, brace
                first, brace = offset + 1, None
        elif char == ";":
            yield code[first:offset if brace is None else brace], first, brace
            first, brace = offset + 1, None
        offset += 1


def _classes_between(code, start, end, outer):
    """(name, offset, public methods, data members) of the classes between two offsets, and of those inside them."""
    for text, first, brace in _members(code, start, end):
        text = _ACCESS.sub("", text)
        if brace is None:
            continue
        if re.match(r"\s*(inline\s+)?namespace\b|\s*extern\b", text):
            yield from _classes_between(code, brace + 1, _closing(code, brace), outer)
            continue
        found = _TYPE.match(_without_angles(text).strip())
        if found is not None:
            name = f"{outer}::{found[2]}" if outer else found[2]
            inside = (brace + 1, _closing(code, brace))
            offset = first + len(code[first:brace]) - len(code[first:brace].lstrip())
            yield name, offset, *_count(code, *inside, found[2], found[1] == "struct")
            yield from _classes_between(code, *inside, name)


def _is_data(member, type_name):
    plain = _without_angles(re.sub(r"\bRNICD_\w+\([^)]*\)", "", member)).strip()
    is_shared = re.match(r"(?:inline\s+)?(?:static|constexpr)\b|enum\b|(?:class|struct)\s+\w+$|template\b", plain)
    return bool(plain) and not is_shared and not _NOT_A_METHOD.search(plain) and not _is_method(member, type_name) and (
        re.search(r"\w+_?\s*(?:=.*)?$", plain, re.DOTALL) is not None) and "(" not in plain.partition("=")[0]


def _count(code, start, end, type_name, is_struct):
    """(public methods, data members; none of a struct)."""
    is_public, methods, data = is_struct, 0, 0
    for text, _, brace in _members(code, start, end):
        while (found := _ACCESS.match(text)) is not None:
            is_public = found[1] == "public"
            text = text[found.end():]
        is_type = brace is not None and _TYPE.match(_without_angles(text).strip()) is not None
        if is_public and not is_type and _is_method(text, type_name):
            methods += 1
        if not is_struct and not is_type and _is_data(text, type_name):
            data += 1
    return methods, data


def classes(text):
    """(name, line, public methods, data members) of each class and struct with a body. An estimate; macros may fool it."""
    code = re.sub(r"^\s*#.*(?:\\\n.*)*$", lambda found: re.sub(r"[^\n]", " ", found[0]),
                  without_comments_and_strings(text), flags=re.MULTILINE)
    for name, offset, methods, data in _classes_between(code, 0, len(code), ""):
        yield name, line_of(text, offset), methods, data


def check_methods(tree):
    offenders = {
        f"{path} {name}": (path, line, methods, rules.PUBLIC_METHODS_MAX)
        for path in tree.with_suffix(".h")
        for name, line, methods, _ in classes(tree.text(path))
        if methods > rules.PUBLIC_METHODS_MAX
    }
    yield from ratchet.compare(tree, rules.METHODS_RATCHET, offenders, "public methods",
                               "give what belongs together a class of its own")


def check_data(tree):
    offenders = {
        f"{path} {name}": (path, line, data, rules.DATA_MEMBERS_MAX)
        for path in tree.with_suffix(".h") if not is_test(path)
        for name, line, _, data in classes(tree.text(path))
        if data > rules.DATA_MEMBERS_MAX
    }
    yield from ratchet.compare(tree, rules.DATA_RATCHET, offenders, "data members",
                               "give what belongs together a class of its own")


CHECKS = [check_methods, check_data]
