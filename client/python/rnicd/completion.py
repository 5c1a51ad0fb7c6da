"""How a posted request ended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from . import _failures

_TYPES = {
    1: "receive",
    2: "send",
    4: "fast register",
    8: "bind",
    16: "invalidate",
    32: "read",
    64: "write",
    32769: "receive and invalidate",
}


@dataclass(frozen=True)
class Completion:
    """The end of one posted request: NDK_RESULT_EX."""

    ntstatus: int
    """0 for success, 0xC0000120 (STATUS_CANCELLED) for a request that was flushed."""
    reason: str
    """Why it failed, finer than the status: "REMOTE_ACCESS_REFUSED". Empty for success."""
    operation: str
    """"receive", "send", "read", "write", "fast register", "bind", "invalidate", "receive and invalidate"."""
    bytes: int
    """Bytes received; for successful receives only."""
    qp_context: int
    """As given to `Session.queue_pair`."""
    context: int
    """As given to `QueuePair.post_raw`."""
    invalidated_token: int
    """With "receive and invalidate": the token that the sender invalidated. Otherwise 0."""
    message: str
    """For people; empty for success."""

    @property
    def ok(self) -> bool:
        """Whether the request succeeded."""
        return self.ntstatus == 0

    @property
    def ntstatus_name(self) -> str:
        """Name of the NTSTATUS, for example "STATUS_ACCESS_VIOLATION"."""
        return _failures.ntstatus_name(self.ntstatus)

    @classmethod
    def of_numbers(
        cls, ntstatus: int, reason: int, kind: int, count: int, qp_context: int, context: int, token: int
    ) -> Completion:
        """Of the numbers in a CqResultEx message, or in a mapped queue."""
        failed = ntstatus != 0
        made = cls.__new__(cls)
        # As __init__ does, which takes four times as long, because the fields are frozen.
        made.__dict__.update(
            ntstatus=ntstatus,
            reason=_failures.reason_name(reason) if failed else "",
            operation=_TYPES.get(kind) or f"operation {kind}",
            bytes=count,
            qp_context=qp_context,
            context=context,
            invalidated_token=token,
            message=_failures.sentence(reason) if failed else "",
        )
        return made

    @classmethod
    def of_wire(cls, wire: Any) -> Completion:
        """Of a CqResultEx message."""
        one = wire.result
        return cls.of_numbers(
            one.ntstatus,
            one.reason,
            wire.type,
            one.bytes_transferred,
            one.qp_context,
            one.request_context,
            wire.type_specific_completion_output,
        )
