"""examples/python: the programs that use the package."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

_EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "python"


def run(name):
    done = subprocess.run(
        [sys.executable, str(_EXAMPLES / name)], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, ""), done
    return done.stdout


def test_the_first_lines_run(daemon):
    assert "in 24 bytes for the peer" in run("first_lines.py")
    daemon.wait_until_empty()


def test_buffers_are_provisioned(daemon):
    assert run("provision.py") == "1265 arrays of 40960 bytes with 1265 tokens\n"
    daemon.wait_until_empty()


def test_two_processes_exchange_an_array(daemon):
    assert run("exchange_array.py") == "done - the last number is now 2097150.0\n"
    daemon.wait_until_empty()


def test_a_parameter_server_learns(daemon):
    said = run("parameter_server.py")
    assert said.startswith("after 200 steps the error is 0.0"), said
    assert len((_EXAMPLES / "parameter_server.py").read_text().splitlines()) <= 60
    daemon.wait_until_empty()


def test_a_tensor_is_the_registered_bytes_where_torch_is(daemon, record_property):
    source = (_EXAMPLES / "torch_tensor.py").read_text()
    compile(source, "torch_tensor.py", "exec")
    there = importlib.util.find_spec("torch") is not None
    # `--junit-xml` and `-rP` show it.
    record_property("torch", "run" if there else "compiled only: torch is not installed")
    print("torch_tensor.py:", "run" if there else "compiled only, as torch is not installed")
    if there:
        assert "(512, 512) at the registered address: True" in run("torch_tensor.py")
