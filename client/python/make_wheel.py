"""Builds the wheel of the assembled package, and unpacks it as Debian's package holds it.

usage: make_wheel.py --package FOLDER --out FOLDER

`--package` is the output of generate.py. OUT gets rnicd-VERSION-py3-none-any.whl, and below OUT/tree what belongs into
dist-packages. Needs python3-setuptools and python3-wheel.
"""

import argparse
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from setuptools import build_meta

# What pip writes for itself: a package of Debian's has a list of its own.
_PIPS_OWN = ("RECORD", "WHEEL")


def build(package: Path, out: Path) -> Path:
    """Builds the wheel into `out`."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder)
        skip = shutil.ignore_patterns("__pycache__")
        shutil.copytree(package / "rnicd", source / "rnicd", ignore=skip)
        shutil.copy(Path(__file__).with_name("pyproject.toml"), source)
        before = os.getcwd()
        os.chdir(source)
        try:
            return out / build_meta.build_wheel(str(out))
        finally:
            os.chdir(before)


def unpack(wheel: Path, tree: Path) -> None:
    """Unpacks the wheel, without what only pip reads."""
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(tree)
    for name in _PIPS_OWN:
        for path in tree.glob(f"*.dist-info/{name}"):
            path.unlink()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    out = options.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    unpack(build(options.package.resolve(), out), out / "tree")


if __name__ == "__main__":
    main()
