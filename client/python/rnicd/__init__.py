"""Registered RDMA memory for Python: a client of the daemon rnicd.

    with rnicd.connect() as s, s.allocate("64MiB") as m, m.register(remote="rw") as r:
        a = np.frombuffer(m, np.float32)          # the registered bytes themselves, no copy
        peer.send(r.remote.to_bytes())            # address, length, token

`rnicd.aio` has the same names for asyncio. `python3 -m rnicd` checks what this machine lacks.
"""

import os as _os

from . import _fork

# Before anything imports grpc.
_fork.choose_poller()

from ._amounts import Size as _Size, parse_size as _parse_size  # noqa: E402
from ._memory import MemoryPart, RegionPart  # noqa: E402
from ._version import __version__  # noqa: E402
from .completion import Completion  # noqa: E402
from .connections import ConnectionData, Connector, ConnectorAddresses, Listener  # noqa: E402
from .errors import (  # noqa: E402
    Closed,
    Denied,
    Error,
    ErrorDetail,
    ForkedError,
    InUse,
    InvalidArgument,
    NotFound,
    QuotaExceeded,
    Refused,
    SessionLost,
    TimedOut,
    TransferFailed,
    Unavailable,
)
from .memory import FastRegion, LogicalMapping, Memory, MemoryWindow, Region, numpy_array  # noqa: E402
from .queues import Batch, CompletionQueue, Pending, QueuePair  # noqa: E402
from .remote import RemoteRegion  # noqa: E402
from .session import Session, connect  # noqa: E402
from .work import Bind, FastRegister, Invalidate, Read, Receive, Send, Sge, Write  # noqa: E402


def memfd(size: _Size, name: str = "rnicd") -> int:
    """A new memory file of `size` bytes that `Session.import_memory` accepts. The caller closes the descriptor.

    Errors: InvalidArgument; OSError where the system has no room.
    """
    size = _parse_size(size)
    descriptor = _os.memfd_create(name, _os.MFD_CLOEXEC | _os.MFD_ALLOW_SEALING)
    try:
        _os.truncate(descriptor, size)
    except BaseException:
        _os.close(descriptor)
        raise
    return descriptor


__all__ = [
    "Batch",
    "Bind",
    "Closed",
    "Completion",
    "CompletionQueue",
    "ConnectionData",
    "Connector",
    "ConnectorAddresses",
    "Denied",
    "Error",
    "ErrorDetail",
    "FastRegion",
    "FastRegister",
    "ForkedError",
    "InUse",
    "InvalidArgument",
    "Invalidate",
    "Listener",
    "LogicalMapping",
    "Memory",
    "MemoryPart",
    "MemoryWindow",
    "NotFound",
    "Pending",
    "QueuePair",
    "QuotaExceeded",
    "Read",
    "Receive",
    "Refused",
    "Region",
    "RegionPart",
    "RemoteRegion",
    "Send",
    "Session",
    "SessionLost",
    "Sge",
    "TimedOut",
    "TransferFailed",
    "Unavailable",
    "Write",
    "__version__",
    "connect",
    "memfd",
    "numpy_array",
]
