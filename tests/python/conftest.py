"""Fixtures: the real daemon with the soft card, and sessions with it."""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
from pathlib import Path
from typing import Any, Iterator

import pytest
import rnicd

import waits
from daemon import Daemon


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a path short enough for a Unix socket."""
    path = Path(tempfile.mkdtemp(prefix="rnicd-"))
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(params=["calls", "rings"])
def data_path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Runs the test both ways; its sessions insist on that way."""
    monkeypatch.setenv("RNICD_DATA_PATH", request.param)
    return str(request.param)


@pytest.fixture
def daemon(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Daemon]:
    """A running daemon; RNICD_SOCKET_DIR names its sockets."""
    monkeypatch.delenv("RNICD_GRANT", raising=False)
    started = Daemon(folder)
    monkeypatch.setenv("RNICD_SOCKET_DIR", started.socket_dir)
    yield started
    started.stop()


@pytest.fixture
def session(daemon: Daemon) -> Iterator[rnicd.Session]:
    """An open session."""
    with rnicd.connect(label="test") as opened:
        yield opened


@pytest.fixture
def pair(session: rnicd.Session) -> Any:
    """Two connected queue pairs of one session."""
    one, other = session.queue_pair(), session.queue_pair()
    one.connect(other.address)
    other.connect(one.address)
    return one, other


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a thread waits for a completion."""
    event = threading.Event()
    for kind, name in waits.PLACES:
        monkeypatch.setattr(kind, name, waits.announced(kind, name, event.set))
    return event


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "essential: also run on emulated RDMA cards, by tests/vm/step_python.sh")
    if "RNICD_PROGRAM" not in os.environ:
        raise pytest.UsageError("RNICD_PROGRAM must name the daemon: run through tests/python/run.py")
