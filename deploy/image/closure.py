"""Finds the shared libraries that programs need, and checks that a tree of files contains them all."""

import os
import pathlib
import subprocess

# libibverbs loads these at run time, so no program is linked to them; without them no card is found.
PROVIDERS = "usr/lib/*/libibverbs/*.so"
PROVIDER_NAMES = "etc/libibverbs.d/*.driver"


class Missing(Exception):
    """A library is missing."""


def parse_ldd(text):
    """The paths in the output of ldd or the loader's --list. Lines without a path belong to the kernel."""
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
    """The path with links in its folders resolved, and a final link kept: /lib/x becomes /usr/lib/x."""
    return os.path.join(os.path.realpath(os.path.dirname(path)), os.path.basename(path))


def with_targets(path):
    """The path and, if it is a link, its chain of targets."""
    path = unfolded(path)
    yield path
    if os.path.islink(path):
        yield from with_targets(os.path.join(os.path.dirname(path), os.readlink(path)))


def needed_files(programs):
    """All files needed besides the programs, sorted: libraries with their links, the loader, the cards' drivers."""
    root = pathlib.Path("/")
    drivers = sorted(str(path) for path in root.glob(PROVIDERS))
    if not drivers:
        raise Missing("no " + PROVIDERS)
    found = set(drivers) | {str(path) for path in root.glob(PROVIDER_NAMES)}
    for file in [*programs, *drivers]:
        found.update(parse_ldd(_output("ldd", file)))
    return sorted({part for path in found for part in with_targets(path)})


def is_elf(path):
    if path.is_symlink() or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) == b"\x7fELF"


def check(out):
    """Runs the tree's own loader on every program and library in it, with the tree as the only search path."""
    loader = next(path for path in sorted(out.glob("usr/lib/*/ld-linux-*")) if not path.is_symlink())
    for file in sorted(out.rglob("*")):
        if not is_elf(file) or file == loader:
            continue
        told = _output(loader, "--inhibit-cache", "--library-path", loader.parent, "--list", file)
        strange = [path for path in parse_ldd(told) if not path.startswith(f"{out}/")]
        if strange:
            raise Missing(f"{file} needs what the image does not hold: {', '.join(strange)}")
