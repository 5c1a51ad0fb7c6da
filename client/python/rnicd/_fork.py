"""What fork does to gRPC, and the guard against it.

gRPC's default poller (epoll1) keeps one epoll descriptor for the process. A forked child shares it, and a child that
opens a channel of its own makes the parent's thread crash. With the poller "poll" each process polls for itself. So
the package chooses that one if gRPC is not loaded yet, and otherwise refuses to open sessions in forked children.
"""

from __future__ import annotations

import ctypes
import os
import sys
import weakref
from typing import Any

from .errors import ForkedError

_VARIABLE = "GRPC_POLL_STRATEGY"
_WORDS = (
    "this process was forked from one that used gRPC with its default poller, and a session opened here could crash "
    'the parent: use the start method "spawn", or set GRPC_POLL_STRATEGY=poll before grpc is first imported'
)


class _State:
    """The process's relation to fork."""

    generation = 0
    """Forks between this process and the first that imported the package."""
    survives = False
    """Whether gRPC polls in a way that survives a fork."""
    used = False
    """Whether this process or a parent has used gRPC."""
    refused = False
    """Whether sessions in this process could crash the parent."""


_channels: weakref.WeakSet[Any] = weakref.WeakSet()


def choose_poller() -> None:
    """Selects the poller that survives fork; must run before grpc is first imported."""
    if "grpc" not in sys.modules:
        os.environ.setdefault(_VARIABLE, "poll")
        _State.survives = os.environ[_VARIABLE] == "poll"
    else:
        # It may have read the variable already, or somebody set it in time.
        _State.survives = os.environ.get(_VARIABLE) == "poll"
        _State.used = True


def generation() -> int:
    """A number that differs between a process and its forked children."""
    return _State.generation


def check_may_open() -> None:
    """Raises ForkedError where a session could crash the parent."""
    if _State.refused:
        raise ForkedError(_WORDS)
    _State.used = True


def check_same_process(born: int) -> None:
    """Raises ForkedError for an object that was made in generation `born`, if that was a parent's."""
    if born != _State.generation:
        raise ForkedError("the session belongs to the parent process: open one in this process")


def keep_in_children(channel: Any) -> None:
    """A forked child never destroys this channel: that would shut down the socket that it shares with the parent."""
    _channels.add(channel)


def _after_in_child() -> None:
    _State.generation += 1
    _State.refused = _State.refused or (_State.used and not _State.survives)
    for channel in list(_channels):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(channel))
    _channels.clear()


os.register_at_fork(after_in_child=_after_in_child)
