"""Fixtures: the daemon on rxa with a session that may listen and connect, and foreign programs."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Callable, Iterator, List

import pytest
import rnicd

import foreign
from daemon import Daemon

_POLICY = f"""
tenant {{
  name: "guest"
  connections {{
    listen {{ prefix: "{foreign.OWN}" }}
    connect {{ prefix: "{foreign.OTHER}" }}
    accept {{ prefix: "{foreign.NETWORK}" }}
  }}
}}
default_tenant: "guest"
"""


@pytest.fixture(scope="module")
def session() -> Iterator[rnicd.Session]:
    """A session with a daemon of its own."""
    folder = Path(tempfile.mkdtemp(prefix="rnicd-"))
    policy = folder / "policy.textproto"
    policy.write_text(_POLICY)
    daemon = Daemon(folder, f"--policy_file={policy}")
    with rnicd.connect(daemon.socket_dir) as opened:
        yield opened
    assert daemon.stop() == 0
    shutil.rmtree(folder)


@pytest.fixture
def start() -> Iterator[Callable[..., "subprocess.Popen[str]"]]:
    """Starts foreign programs, none of which outlives the test."""
    children: List["subprocess.Popen[str]"] = []

    def run(*command: str) -> "subprocess.Popen[str]":
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        children.append(child)
        return child

    yield run
    for child in children:
        child.kill()
        # Shown when the test fails.
        print(child.args, child.communicate()[0])
