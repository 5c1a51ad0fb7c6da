"""Which shared libraries programs need, and whether a tree of files holds them all."""

import os
import pathlib
import subprocess

# libibverbs loads these by itself, so no program names them: without them there would be no cards.
PROVIDERS = "usr/lib/*/libibverbs/*.so"
PROVIDER_NAMES = "etc/libibverbs.d/*.driver"


class Missing(Exception):
    """A library that is not there."""


def told_by_ldd(text):
    """The paths of what ldd or the loader's --list prints. Lines without a path are the kernel's own."""
    paths = []
    for line in text.splitlines():
        if "not found" in line:
            raise Missing(line.strip())
        words = line.split()
        path = words[2] if "=>" in words and len(words) > 2 else words[0] if words else ""
        if path.startswith("/"):
            paths.append(path)
    return paths


def _output(*command):
    return subprocess.run([str(part) for part in command], check=True, capture_output=True, text=True).stdout


def unfolded(path):
    """The path without links in its folders, and the link itself kept: /lib/x is /usr/lib/x."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def with_targets(path):
    """The path and, if it is a link, all that it leads to."""
    path = unfolded(path)
    yield path
    if os.path.islink(path):
        yield from with_targets(os.path.join(os.path.dirname(path), os.readlink(path)))


def needed_files(programs):
    """All files beside the programs themselves, sorted: libraries with their links, the loader, the cards' drivers."""
    root = pathlib.Path("/")
    drivers = sorted(str(path) for path in root.glob(PROVIDERS))
    if not drivers:
        raise Missing("no " + PROVIDERS)
    found = set(drivers) | {str(path) for path in root.glob(PROVIDER_NAMES)}
    for file in [*programs, *drivers]:
        found.update(told_by_ldd(_output("ldd", file)))
    return sorted({part for path in found for part in with_targets(path)})


def _is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def check(out):
    """Asks the tree's own loader about every program and library in it, with nothing but the tree to look in."""
    loader = next(path for path in sorted(out.glob("usr/lib/*/ld-linux-*")) if not path.is_symlink())
    for file in sorted(out.rglob("*")):
        if not _is_elf(file) or file == loader:
            continue
        told = _output(loader, "--inhibit-cache", "--library-path", loader.parent, "--list", file)
        strange = [path for path in told_by_ldd(told) if not path.startswith(f"{out}/")]
        if strange:
            raise Missing(f"{file} needs what the image does not hold: {', '.join(strange)}")
