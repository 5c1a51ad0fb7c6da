"""The files of a repository, and what the checks say about them."""

import os
import pathlib
import re

import rules


class Tree:
    """Reads every file once. Paths are relative to the root, with forward slashes."""

    def __init__(self, root):
        self.root = pathlib.Path(root)
        self.paths = []
        self._texts = {}
        for folder, folders, files in os.walk(self.root):
            folders[:] = sorted(name for name in folders if name not in rules.IGNORED_FOLDERS)
            for name in sorted(files):
                self.paths.append((pathlib.Path(folder) / name).relative_to(self.root).as_posix())

    def exists(self, path):
        return (self.root / path).is_file()

    def is_executable(self, path):
        return os.access(self.root / path, os.X_OK)

    def text(self, path):
        """Empty for a file that is missing or not text."""
        if path not in self._texts:
            try:
                self._texts[path] = (self.root / path).read_text()
            except (OSError, UnicodeDecodeError):
                self._texts[path] = ""
        return self._texts[path]

    def with_suffix(self, *suffixes):
        return [path for path in self.paths if path.endswith(suffixes)]


class Violation:
    """One finding: where, which rule, how to mend it."""

    def __init__(self, path, line, rule, remedy):
        self.path, self.line, self.rule, self.remedy = path, line, rule, remedy

    def __str__(self):
        return f"{self.path}:{self.line}: {self.rule}; {self.remedy}"


def is_unit_test(path):
    """Whether the name says that this is a test, or what only the tests beside it use."""
    return re.search(r"_(?:test|fake|fixture)\.(?:cc|h|py)$", path) is not None


def is_test(path):
    return path.startswith("tests/") or is_unit_test(path)


def folder_of(path):
    return path.rpartition("/")[0]


def is_under(path, places):
    """Whether the path is one of the places or lies in one that is a folder."""
    return any(path == place or path.startswith(place.rstrip("/") + "/") for place in places)


def folder_of_target(tree, folder):
    """The folder whose CMakeLists.txt makes the target of this one: itself, or one above of which it is a room."""
    above, room = folder_of(folder), folder.rpartition("/")[2]
    while above and not tree.exists(f"{folder}/CMakeLists.txt"):
        if room in rooms_in(tree.text(f"{above}/CMakeLists.txt")):
            return above
        above, room = folder_of(above), f"{above.rpartition('/')[2]}/{room}"
    return folder


def rooms_in(text):
    """The names after ROOMS in a CMakeLists.txt, or in the arguments of one call."""
    text = re.sub(r"#[^\n]*", "", text)
    return [room for found in re.finditer(r"\bROOMS((?:\s+[a-z][\w/]*)+)", text) for room in found[1].split()]


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


_NOT_CODE = re.compile(
    r"""//[^\n]*|/\*.*?\*/|R"(?P<tag>[^(\s]*)\(.*?\)(?P=tag)"|"(?:[^"\\\n]|\\.)*"|"""
    # A quote after a digit separates digits.
    r"""(?<![0-9a-fA-F])'(?:[^'\\\n]|\\.)*'""",
    re.DOTALL)


def without_comments_and_strings(text):
    """C++ text with comments and literals blanked, line numbers and lengths kept."""
    return _NOT_CODE.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
