"""What fork does to gRPC, and the guard against it.

A forked child inherits gRPC's locks and condition variables, but not the threads that wait on them. A channel that it
opens hangs or ends the child within a few calls, and with gRPC's default poller (epoll1), whose descriptor both
processes share, it can crash the parent. So the package chooses the poller "poll", which shares nothing, and refuses
sessions in forked children of a process that has used gRPC.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
import weakref
from typing import Any

from .errors import ForkedError

_STRATEGY = "GRPC_POLL_STRATEGY"
_POLLERS = {"epoll1", "poll", "none", "all"}
_WORDS = (
    "this process was forked from one that used gRPC, which does not survive that: fork before the first session, or "
    'start workers with the method "spawn"; forked workers may read and write Memory without a session'
)


class _State:
    """The process's relation to fork."""

    generation = 0
    """Forks between this process and the first that imported the package."""
    used = False
    """Whether this process has used gRPC, or may have."""
    refused = False
    """Whether a parent had used gRPC when it forked this process."""


_channels: weakref.WeakSet[Any] = weakref.WeakSet()


def choose_poller() -> None:
    """Selects the poller that shares nothing with children; must run before grpc is first imported."""
    if "grpc" in sys.modules:
        _State.used = True
        return
    wanted = os.environ.setdefault(_STRATEGY, "poll")
    # With none that it has, gRPC ends the process, and core dumps are all it says.
    if not _POLLERS.intersection(wanted.split(",")):
        warnings.warn(f'{_STRATEGY}="{wanted}" names no poller that gRPC has; rnicd sets it to poll', RuntimeWarning)
        os.environ[_STRATEGY] = "poll"


def generation() -> int:
    """A number that differs between a process and its forked children."""
    return _State.generation


def check_may_open() -> None:
    """Raises ForkedError where a session would not work."""
    if _State.refused:
        raise ForkedError(_WORDS)
    _State.used = True


def check_same_process(born: int) -> None:
    """Raises ForkedError for an object that was made in generation `born`, if that was a parent's."""
    if born != _State.generation:
        raise ForkedError("the session belongs to the parent process")


def keep_in_children(channel: Any) -> None:
    """A forked child never destroys this channel: that would shut down the socket that it shares with the parent."""
    _channels.add(channel)


def _after_in_child() -> None:
    _State.generation += 1
    _State.refused = _State.refused or _State.used
    for channel in list(_channels):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(channel))
    _channels.clear()


os.register_at_fork(after_in_child=_after_in_child)
