"""The wheel."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import rnicd

_MAKE = Path(__file__).resolve().parents[2] / "client" / "python" / "make_wheel.py"
_PACKAGE = Path(rnicd.__file__).parents[1]


def test_a_wheel_is_complete_and_runs_by_itself(daemon, folder):
    out = folder / "wheel"
    made = subprocess.run(
        [sys.executable, str(_MAKE), "--package", str(_PACKAGE), "--out", str(out)], capture_output=True, text=True
    )
    assert made.returncode == 0, made.stderr
    (wheel,) = out.glob("*.whl")
    assert wheel.name == f"rnicd-{rnicd.__version__}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    sources = {str(path.relative_to(_PACKAGE)) for path in _PACKAGE.rglob("rnicd/**/*.py")}
    assert sources <= names and "rnicd/py.typed" in names and "rnicd/_proto/types_pb2.py" in names
    environment = {**os.environ, "PYTHONPATH": str(out / "tree")}
    done = subprocess.run(
        [sys.executable, "-m", "rnicd"], env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0 and "everything works" in done.stdout, done
    metadata = next((out / "tree").glob("*.dist-info/METADATA")).read_text()
    assert "Requires-Dist: grpcio" in metadata and not list((out / "tree").glob("*.dist-info/RECORD"))
