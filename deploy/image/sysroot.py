"""The same as closure.py for programs of another architecture, none of which can run here: libraries come from a sysroot
of unpacked Debian packages, and are found by the names that ELF files have of them."""

import os
import pathlib
import re
import subprocess

from closure import Missing, PROVIDER_NAMES, PROVIDERS, is_elf

NEEDED = re.compile(r"\(NEEDED\).*\[(.*)\]|Requesting program interpreter: (.*)\]")


def names_needed(file):
    """The names of libraries, and for a program the path of its loader."""
    told = subprocess.run(["readelf", "--wide", "--dynamic", "--program-headers", str(file)], check=True,
                          capture_output=True, text=True).stdout
    return [one or two for one, two in NEEDED.findall(told)]


def _folders(root):
    """Where the loader of Debian looks, as paths below root."""
    return sorted((root / "usr/lib").glob("*-linux-gnu*"))


def _find(name, root, user):
    for folder in _folders(root):
        path = folder / os.path.basename(name)
        if path.exists():
            return path
    raise Missing(f"{user} needs {name}, which is not in {root}")


def _with_targets(path):
    yield path
    if path.is_symlink():
        yield from _with_targets(pathlib.Path(os.path.normpath(path.parent / os.readlink(path))))


def _needed_by(files, root):
    """All libraries that the files need, and those that these need."""
    found, left = set(), list(files)
    while left:
        file = left.pop()
        for name in names_needed(file):
            path = _find(name, root, file)
            if path not in found:
                found.add(path)
                left.append(path)
    return found


def needed_files(programs, root):
    """As closure.needed_files: paths without the root."""
    drivers = set(root.glob(PROVIDERS))
    if not drivers:
        raise Missing("no " + PROVIDERS)
    found = drivers | set(root.glob(PROVIDER_NAMES)) | _needed_by([*programs, *drivers], root)
    # The place that programs name.
    found |= {path for path in (root / "usr/lib").glob("ld-linux-*") if path.exists()}
    return sorted({"/" + str(part.relative_to(root)) for path in found for part in _with_targets(path)})


def check(out):
    """Every program and library of the tree finds all that it needs within the tree."""
    _needed_by([file for file in sorted(out.rglob("*")) if is_elf(file)], out)
