"""Runs small programs in interpreters of their own, for tests of fork, signals and exit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from typing import Any

_TIMEOUT_S = 60
_HEAD = "import os, sys, time, signal, threading\n"


def start(program: str, **environment: str) -> "subprocess.Popen[str]":
    """Starts the program; `import rnicd` is its own."""
    return subprocess.Popen(
        [sys.executable, "-X", "faulthandler", "-c", _HEAD + textwrap.dedent(program)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def finish(child: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """(status, stdout, stderr) of the program, which must end by itself."""
    try:
        out, err = child.communicate(timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        # The group, because its forked children hold the pipes too.
        os.killpg(child.pid, signal.SIGABRT)
        out, err = child.communicate()
        raise AssertionError(f"the program hangs:\n{out}{err}") from None
    return child.returncode, out, err


def run(program: str, **environment: str) -> tuple[int, str, str]:
    """Runs the program to its end."""
    return finish(start(program, **environment))


def run_well(program: str, **environment: str) -> str:
    """Runs a program that must succeed and say nothing on stderr; returns its output."""
    status, out, err = run(program, **environment)
    assert (status, err) == (0, ""), (status, out, err)
    return out


def wait_for_line(child: Any, line: str) -> None:
    """Reads the program's output until the line."""
    for said in child.stdout:
        if said.strip() == line:
            return
    raise AssertionError(f"no {line!r}: {child.stderr.read()}")
