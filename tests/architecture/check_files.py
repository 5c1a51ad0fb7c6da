"""Words, READMEs, dead files, include guards and executable bits."""

import collections
import re

import ratchet
import rules
from tree import Violation, folder_of, folder_of_target, is_under, is_unit_test, line_of

_TEXT_SUFFIXES = (".cc", ".h", ".inc", ".proto", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".yaml", ".yml", ".in")


def _is_text(tree, path):
    return path.endswith(_TEXT_SUFFIXES) or "." not in path.rpartition("/")[2] or tree.is_executable(path)


def check_words(tree):
    for path in tree.paths:
        if not _is_text(tree, path) or path in rules.WORDS_ALLOWED_IN:
            continue
        text = tree.text(path)
        for pattern, remedy in rules.WORDS.items():
            for found in re.finditer(pattern, text):
                yield Violation(path, line_of(text, found.start()), f'"{found[0]}" is not allowed here', remedy)


def check_readmes(tree):
    folders = set(rules.ALSO_DOCUMENTED) & {folder_of(path) for path in tree.paths}
    for path in tree.paths:
        folder = folder_of(path)
        if path.endswith(tuple(rules.CODE_SUFFIXES)) or (folder == "scripts" and tree.is_executable(path)):
            # A folder of code and every folder above it.
            while folder:
                folders.add(folder)
                folder = folder_of(folder)
    for folder in sorted(folders):
        if any(folder.startswith(prefix) for prefix in rules.DOCUMENTED_BY_PARENT):
            continue
        readme = f"{folder}/README.md"
        if not tree.text(readme).startswith("# "):
            yield Violation(readme, 1, "every folder with code has a README.md that starts with a heading",
                            "one page: what it is for, what may include it, read this first, how to add one")


def _reached_folders(tree):
    """The folders that CMake enters, starting at the root."""
    reached, waiting = set(), [""]
    while waiting:
        folder = waiting.pop()
        reached.add(folder)
        text = re.sub(r"#[^\n]*", "", tree.text(f"{folder}/CMakeLists.txt".lstrip("/")))
        for name in re.findall(r"add_subdirectory\(\s*([\w/.-]+)", text):
            below = f"{folder}/{name}".lstrip("/")
            if below not in reached:
                waiting.append(below)
    return reached


def check_image(tree):
    """A folder of the build that .dockerignore leaves out breaks the image, and nothing else."""
    path = ".dockerignore"
    kept = {line[1:] for line in tree.text(path).splitlines() if line.startswith("!")}
    text = re.sub(r"#[^\n]*", "", tree.text("CMakeLists.txt"))
    for name in re.findall(r"add_subdirectory\(\s*(\w+)", text):
        if name != "tests" and name not in kept:
            yield Violation(path, 1, f"{name}/ is left out of the image's build", f'add "!{name}"')


def check_targets(tree):
    """leveldb's best test is commented out of its build; ours cannot be."""
    reached = _reached_folders(tree)
    for path in tree.with_suffix(".cc"):
        folder = folder_of_target(tree, folder_of(path))
        text = re.sub(r"#[^\n]*", "", tree.text(f"{folder}/CMakeLists.txt"))
        calls = rules.TEST_TARGET_CALLS if is_unit_test(path) else rules.TARGET_CALLS
        if folder not in reached:
            yield Violation(path, 1, "no build reaches this file",
                            f"add_subdirectory({folder.rpartition('/')[2]}) above it")
        elif not any(re.search(rf"\b{call}\(", text) for call in calls):
            yield Violation(path, 1, "this file belongs to no target",
                            f"{folder}/CMakeLists.txt must call {' or '.join(calls)}")


def check_folder_sizes(tree):
    counts = collections.Counter(folder_of(path) for path in tree.with_suffix(*rules.SIZED_SUFFIXES))
    offenders = {folder: (folder, 1, count, rules.FOLDER_FILES_MAX)
                 for folder, count in counts.items() if count > rules.FOLDER_FILES_MAX}
    yield from ratchet.compare(tree, rules.FOLDERS_RATCHET, offenders, "files of code", "give it rooms, or merge small files")


def check_guards(tree):
    for path in tree.with_suffix(".h"):
        if not re.search(r"^#pragma once$", tree.text(path), re.MULTILINE):
            yield Violation(path, 1, "a header without #pragma once", "put it first")


def check_executables(tree):
    for path in tree.paths:
        expected = any(re.search(pattern, path) for pattern in rules.EXECUTABLE)
        if tree.is_executable(path) and not expected:
            yield Violation(path, 1, "only scripts/ and .ci/run are executable", f"chmod -x {path}")
        elif expected and not tree.is_executable(path):
            yield Violation(path, 1, "a script that cannot be run", f"chmod +x {path}")
        elif expected and not tree.text(path).startswith("#!/usr/bin/env "):
            yield Violation(path, 1, "a script without an interpreter", "first line: #!/usr/bin/env bash")


CHECKS = [check_words, check_readmes, check_targets, check_folder_sizes, check_image, check_guards, check_executables]
