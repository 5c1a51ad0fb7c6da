"""Exceptions: every failure of this package is an `Error`. Switch on the class or on `reason`, never on text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


class Error(Exception):
    """Base of all failures that rnicd reports."""

    posted: int = 0
    """When a chain was refused: the number of requests before that one, which were posted and are executed."""
    pending: Any = None
    """The Pending of those requests, if `QueuePair.post` posted them; otherwise None."""


@dataclass(frozen=True)
class ErrorDetail:
    """What the daemon says about a refusal. Amounts are in the unit of `reason`; 0 where it has none."""

    reason: str
    """Name of the reason as in docs/ERRORS.md, for example "QUOTA_PINNED_BYTES"; "REASON_<number>" for one that is
    newer than this package."""
    ntstatus: int
    """NTSTATUS of the case, for example 0xC000009A."""
    ntstatus_name: str
    """For example "STATUS_INSUFFICIENT_RESOURCES"."""
    field: str
    """The request field at fault; empty when no single field is."""
    message: str
    """For people."""
    limit: int = 0
    used: int = 0
    requested: int = 0
    retry_after: float = 0.0
    """Seconds after which the same may succeed; 0 where that is not known."""


class Refused(Error):
    """The daemon refused a call; nothing changed. The fields are those of `ErrorDetail`."""

    def __init__(self, detail: ErrorDetail) -> None:
        super().__init__(detail)
        self.detail = detail

    @property
    def reason(self) -> str:
        """Name of the reason, as in docs/ERRORS.md."""
        return self.detail.reason

    @property
    def ntstatus(self) -> int:
        """NTSTATUS of the case."""
        return self.detail.ntstatus

    @property
    def ntstatus_name(self) -> str:
        """Name of the NTSTATUS."""
        return self.detail.ntstatus_name

    @property
    def field(self) -> str:
        """The request field at fault; empty when no single field is."""
        return self.detail.field

    @property
    def limit(self) -> int:
        """For a quota or a rate: the limit."""
        return self.detail.limit

    @property
    def used(self) -> int:
        """For a quota or a rate: the amount in use."""
        return self.detail.used

    @property
    def requested(self) -> int:
        """For a quota or a rate: the amount requested."""
        return self.detail.requested

    @property
    def retry_after(self) -> float:
        """Seconds after which the same may succeed; 0 where that is not known."""
        return self.detail.retry_after

    def __str__(self) -> str:
        detail = self.detail
        parts = [detail.reason, detail.ntstatus_name]
        if detail.field:
            parts.append(f"field {detail.field}")
        if detail.limit or detail.used or detail.requested:
            parts.append(f"limit {detail.limit}, used {detail.used}, requested {detail.requested}")
        return f"{detail.message} ({', '.join(parts)})"


class InvalidArgument(Refused, ValueError):
    """An argument is wrong, whatever the state. This package raises it itself where it can tell before the call."""


class WrongType(InvalidArgument, TypeError):
    """An argument is of a type that does not fit."""


class QuotaExceeded(Refused, MemoryError):
    """A limit of the session, its tenant or the node is reached: see `limit`, `used` and `requested`."""


class NotFound(Refused, LookupError):
    """No such object, adapter or session."""


class InUse(Refused):
    """Something else still needs the object: close that first."""


class Denied(Refused):
    """The policy of the node, or the grant, does not allow it."""


class TransferFailed(Error):
    """A posted request failed. Its queue pair executes nothing any more: close it and connect a new one.

    `reason`, `ntstatus` and `ntstatus_name` are as in `Refused`; `operation` is the request's kind ("write"), `index`
    its place in the posted chain, from 0.
    """

    def __init__(
        self, reason: str, ntstatus: int, ntstatus_name: str, operation: str, index: int, message: str
    ) -> None:
        super().__init__(reason, ntstatus, ntstatus_name, operation, index, message)
        self.reason = reason
        self.ntstatus = ntstatus
        self.ntstatus_name = ntstatus_name
        self.operation = operation
        self.index = index
        self.message = message

    def __str__(self) -> str:
        return f"{self.operation}: {self.message} ({self.reason}, {self.ntstatus_name}, request {self.index})"


class SessionLost(Error, ConnectionError):
    """The session has ended without `close`; everything of it is gone. Open a new one.

    `cause` is the daemon's word: "evicted", "daemon_stopping", "grant_revoked", "grant_expired", "connection_lost" or
    "closed".
    """

    def __init__(self, cause: str) -> None:
        super().__init__(cause)
        self.cause = cause

    def __str__(self) -> str:
        return f"the session has ended: {self.cause}"


class Unavailable(Error, ConnectionError):
    """The daemon does not answer, or refuses new work for a while (`detail` is set then)."""

    def __init__(self, message: str, detail: ErrorDetail | None = None) -> None:
        super().__init__(message, detail)
        self.detail = detail

    def __str__(self) -> str:
        return str(self.args[0])


class TimedOut(Error, TimeoutError):
    """No answer in time. A call may have been executed all the same; a transfer may still end."""


class ForkedError(Error, RuntimeError):
    """The object belongs to the parent process: open a session in this one."""


class Closed(Error, ValueError):
    """The object was closed before."""
