"""Include arrows, link arrows, headers and names that belong to one folder."""

import re

import rules
from tree import (Violation, folder_of, is_test, is_under, is_unit_test, line_of, rooms_in,
                  without_comments_and_strings)

_INCLUDE = re.compile(r'^\s*#\s*include\s+[<"]([^>"]+)[>"]', re.MULTILINE)
_LIBRARY = re.compile(r"^\s*rnicd_(?:test_)?library\((\w+)\s*(.*?)\)", re.MULTILINE | re.DOTALL)


def _module_of(folder):
    """The listed folder that the folder is or lies in; None when there is none."""
    while folder and folder not in rules.ARROWS:
        folder = folder_of(folder)
    return folder or None


def _target_module(include):
    """What an include names, in the words of the arrows; None for a header of others."""
    if include.startswith("rnicd/v1/"):
        return "grpc" if include.endswith(".grpc.pb.h") else "proto"
    if is_under(include, rules.FREE_FOLDERS):
        return include.partition("/")[0]
    return _module_of(folder_of(include))


def _covers(arrows, target):
    """Whether one of the arrows leads to this module: by its name, or by that of a folder with its rooms."""
    return target in arrows or any(arrow.endswith("/") and f"{target}/".startswith(arrow) for arrow in arrows)


def _allowed(path, module):
    allowed = {module, *rules.ARROWS[module]}
    if is_unit_test(path):
        allowed.update(rules.UNIT_TEST_ARROWS)
        allowed.update(f"{whole}/" for whole in rules.SHARED_FIXTURES if is_under(module, [whole]))
    return allowed


def _check_one(path, line, include):
    """Checks one include of ours."""
    module = _module_of(folder_of(path))
    target = _target_module(include)
    if module is None or target is None:
        return
    if not _covers(_allowed(path, module), target):
        yield Violation(path, line, f'{module} may not include "{include}"',
                        "move the code to the layer that may, or pass in what it needs through an interface")
    elif target == "proto" and include not in rules.PROTO_SUBSETS.get(module, [include]):
        yield Violation(path, line, f'{module} may not include "{include}"',
                        f"of the generated headers it may see only {', '.join(rules.PROTO_SUBSETS[module])}")


def check_arrows(tree):
    for path in tree.with_suffix(".cc", ".h"):
        for found in _INCLUDE.finditer(tree.text(path)):
            yield from _check_one(path, line_of(tree.text(path), found.start(1)), found[1])


def check_tests(tree):
    """The image is built without the tests beside the code."""
    for path in tree.with_suffix(".cc", ".h"):
        for found in _INCLUDE.finditer(tree.text(path)):
            if is_unit_test(found[1]) and not is_test(path):
                yield Violation(path, line_of(tree.text(path), found.start(1)),
                                f'only tests may include "{found[1]}"', "move what both need to a file of its own")


def check_separate(tree):
    """The arrows themselves: no row may join two trees that are separate."""
    path = "tests/architecture/rules.py"
    pairs = {pair for one, other in rules.SEPARATE for pair in ((one, other), (other, one))}
    for module, targets in rules.ARROWS.items():
        for target in targets:
            for one, other in pairs:
                if is_under(module, [one]) and is_under(target, [other]):
                    text = tree.text(path)
                    yield Violation(path, line_of(text, max(text.find(f'"{module}":'), 0)),
                                    f"{module} may not have an arrow to {target}",
                                    "move the shared code to a folder of its own beside base")


def check_folders(tree):
    folders = {folder_of(path): path for path in reversed(tree.with_suffix(".cc", ".h"))}
    for folder, path in sorted(folders.items()):
        if _module_of(folder) is None and not is_under(folder, rules.FREE_FOLDERS):
            yield Violation(path, 1, f"{folder} is a folder without an arrow", "give it a row in ARROWS of rules.py")


def check_links(tree):
    """A library may link only the libraries of the folders that it, or a room of it, may include."""
    folders, links = {}, []
    for path in tree.paths:
        if not path.endswith("CMakeLists.txt"):
            continue
        text = re.sub(r"#[^\n]*", "", tree.text(path))
        for found in _LIBRARY.finditer(text):
            folders[found[1]] = folder_of(path)
            dependencies = found[2].partition("TEST_DEPS")[0].split()
            inside = [folder_of(path), *(f"{folder_of(path)}/{room}" for room in rooms_in(found[2]))]
            links.append((path, line_of(text, found.start(1)), folder_of(path), inside, dependencies))
    for path, line, folder, inside, dependencies in links:
        modules = {_module_of(place) for place in inside} - {None}
        allowed = modules.union(*(rules.ARROWS[module] for module in modules))
        for dependency in dependencies:
            target = _module_of(folders.get(dependency, ""))
            if modules and target and not _covers(allowed, target):
                yield Violation(path, line, f"{folder} may not link {dependency}", "delete it from DEPS")


def _matches(include, header):
    """Whether an include is this header, or in this folder."""
    return include.startswith(header) if header.endswith("/") else include == header


def check_external(tree):
    for path in tree.with_suffix(".cc", ".h"):
        for found in _INCLUDE.finditer(tree.text(path)):
            for prefix, places in rules.EXTERNAL_INCLUDES.items():
                if _matches(found[1], prefix) and not is_under(path, places):
                    yield Violation(path, line_of(tree.text(path), found.start(1)),
                                    f"<{found[1]}> may not be included here",
                                    f"it belongs to {', '.join(places) or 'nobody'}")


def check_names(tree):
    for path in tree.with_suffix(".cc", ".h"):
        text = without_comments_and_strings(tree.text(path))
        for pattern, places in rules.NAMES.items():
            if is_under(path, places):
                continue
            for found in re.finditer(pattern, text):
                remedy = next((text for word, text in rules.NAME_REMEDIES.items() if word in found[0]),
                              "use base/mutex.h")
                yield Violation(path, line_of(text, found.start()), f"{found[0]} is not used here", remedy)


def check_portable(tree):
    for path in tree.with_suffix(".cc", ".h"):
        of_one_system = is_unit_test(path) or path.endswith(tuple(rules.PORTABLE_SUFFIXES))
        if of_one_system or not is_under(path, rules.PORTABLE_FOLDERS):
            continue
        for found in _INCLUDE.finditer(tree.text(path)):
            if any(_matches(found[1], header) for header in rules.SYSTEM_HEADERS):
                yield Violation(path, line_of(tree.text(path), found.start(1)), f"<{found[1]}> is a header of one system",
                                "call it in a *_linux.cc, behind a header that every system can have")


CHECKS = [check_arrows, check_tests, check_separate, check_folders, check_links, check_external, check_portable, check_names]
