"""Memory that the daemon and this process share: the files of rings and of mapped completion queues.

docs/RINGS.md describes their bytes. Python has no atomics, so the order of accesses comes from x86-64 and from locks:

- A word is loaded or stored by `memoryview.cast("I")`, which copies its 4 aligned bytes by one move. On x86 a load is
  an acquire, and a store is a release.
- x86 may execute a load before an earlier store to another address. Both handshakes of docs/RINGS.md need these two in
  order, so `fence` is between them. It acquires and releases a threading.Lock. No lock can be acquired without an
  atomic read-modify-write, which on x86 is an instruction with the prefix `lock`, and that is a full barrier (Intel's
  SDM, volume 3, 9.2). CPython 3.11 on glibc 2.36: sem_trywait and sem_post have a `lock cmpxchg` each.

On other processors plain accesses have no order: `SUPPORTED` is False, and the package uses calls.
"""

from __future__ import annotations

import os
import platform
import struct
import threading
import weakref

from . import _mapping

SUPPORTED = platform.machine() in ("x86_64", "AMD64")
ENTRY_BYTES = 64
LINE_BYTES = 128
WAKE_NOT, WAKE_BY_FUTEX, WAKE_BY_PIPE = 0, 1, 2
INDEX_MASK = 0xFFFFFFFF
"""Indices run freely through 32 bits."""
_VERSION = 1
_DESCRIPTION = struct.Struct("<8sIIIIIII")


class BadFile(Exception):
    """The file is not what this package can use."""


class SharedFile:
    """A mapped file of the daemon, and its description. Forked children do not have the mapping.

    Lifetime: the mapping ends with the last view of it. Threads: safe; who may store which word is the caller's matter.
    """

    submission_offset: int
    completion_offset: int
    entries: int
    payload_offset: int
    payload_bytes: int

    def __init__(self, descriptor: int, length: int, magic: bytes, header_bytes: int) -> None:
        """Maps the file; the caller closes the descriptor. Errors: BadFile, OSError."""
        # A file shorter than its mapping would end the process at the first access.
        if length < header_bytes or length % 4 or os.fstat(descriptor).st_size < length:
            raise BadFile("the shared memory is shorter than announced")
        self.address, self.bytes = _mapping.map_shared(descriptor, length)
        self.words = self.bytes.cast("I")
        self._lock = threading.Lock()
        # A copy: what is in the file later does not count.
        found, version, _, *places = _DESCRIPTION.unpack_from(self.bytes)
        self.submission_offset, self.completion_offset, self.entries, self.payload_offset, self.payload_bytes = places
        if (found, version) != (magic, _VERSION) or self.entries < 1 or self.entries & (self.entries - 1):
            raise BadFile(f"not a file of this kind and version: {found!r}, {version}")
        self.check_inside(self.completion_offset, self.entries * ENTRY_BYTES, header_bytes)

    def check_inside(self, offset: int, count: int, header_bytes: int) -> None:
        """Raises BadFile unless `count` bytes from `offset` are in the file, behind its header."""
        if offset < header_bytes or offset + count > len(self.bytes):
            raise BadFile("parts of the shared memory are outside it")

    def fence(self) -> None:
        """Every load that follows is executed after every store before; see the top of this module."""
        with self._lock:
            pass


class Descriptor:
    """A descriptor that is closed when nothing refers to this object any more.

    Not before: a thread that is about to write to it would write to another file of the same number.
    """

    def __init__(self, number: int) -> None:
        self.number = number
        weakref.finalize(self, os.close, number).atexit = False
