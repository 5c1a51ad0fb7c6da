"""Checks the Python client's types, format and style with Debian's mypy, black and flake8.

usage: style.py --source REPOSITORY --package FOLDER
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

# What is formatted by black; the rest of the repository's Python has a style of its own.
_EXAMPLES = ("first_lines.py", "provision.py", "exchange_array.py", "parameter_server.py", "torch_tensor.py")
_FORMATTED = ("client/python", "tests/python", "tests/vm/foreign", *(f"examples/python/{name}" for name in _EXAMPLES))
# Programs of users, which must type-check against the package.
_TYPED = ("tests/python/typed_user.py", *(f"examples/python/{name}" for name in _EXAMPLES))


def run(*command: str, **environment: str) -> bool:
    print("+", *command, flush=True)
    return subprocess.run(command, env={**os.environ, **environment}, check=False).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--package", type=Path, required=True)
    options = parser.parse_args()
    client = options.source / "client" / "python"
    paths = [str(options.source / name) for name in _FORMATTED]
    typed = [str(options.source / name) for name in _TYPED]
    config = f"--config-file={client / 'pyproject.toml'}"
    cache = f"--cache-dir={options.package.parent / 'mypy_cache'}"
    results = [
        run("black", "--check", "--quiet", f"--config={client / 'pyproject.toml'}", *paths),
        run("flake8", f"--config={client / '.flake8'}", *paths),
        run("mypy", config, cache, "--package=rnicd", MYPYPATH=str(options.package)),
        run("mypy", config, cache, *typed, MYPYPATH=str(options.package)),
    ]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
