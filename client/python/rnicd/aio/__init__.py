"""rnicd for asyncio: the same names, and what waits is awaited.

    async with rnicd.aio.connect() as s, s.allocate("64MiB") as m, m.register(remote="rw") as r:
        a = np.frombuffer(m, np.float32)

`await s.allocate("64MiB")` works too. Objects belong to the event loop in which their session was opened, and a session
is not shared with the sync client. Threads: none of it is safe to use from another thread.
"""

from .connections import Connector, Listener
from .memory import FastRegion, LogicalMapping, Memory, MemoryWindow, Region
from .queues import Batch, CompletionQueue, Pending, QueuePair
from .session import Session, connect

__all__ = [
    "Batch",
    "CompletionQueue",
    "Connector",
    "FastRegion",
    "Listener",
    "LogicalMapping",
    "Memory",
    "MemoryWindow",
    "Pending",
    "QueuePair",
    "Region",
    "Session",
    "connect",
]
