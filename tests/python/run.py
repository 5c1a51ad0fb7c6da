"""Runs the tests of the Python client with pytest.

usage: run.py --package FOLDER --rnicd PROGRAM --rnicctl PROGRAM [--junit FILE] [ARGUMENT OF PYTEST...]
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--rnicd", type=Path, required=True)
    parser.add_argument("--rnicctl", type=Path, required=True)
    options, others = parser.parse_known_args()
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(options.package.resolve()), str(_HERE), str(_HERE.parent / "support")]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "RNICD_PROGRAM": str(options.rnicd.resolve()),
        "RNICCTL_PROGRAM": str(options.rnicctl.resolve()),
    }
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--rootdir={_HERE}", *others]
    if not any(os.path.exists(one.partition("::")[0]) for one in others):
        command.append(str(_HERE))
    return subprocess.run(command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
