"""Mappings of memory files, made by ctypes.

Not by mmap.mmap: that keeps a duplicate of the descriptor for its life, stops every other thread while it populates,
and cannot be closed while a view of it lives.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import weakref
from typing import Any, Tuple

from . import _fork

_MADV_DONTFORK = 10
_MADV_POPULATE_READ = 22
_MAP_FAILED = ctypes.c_void_p(-1).value
# A CDLL, not a PyDLL: it lets other threads run during the call.
_libc = ctypes.CDLL(None, use_errno=True)
_libc.mmap.restype = ctypes.c_void_p
_libc.mmap.argtypes = [
    ctypes.c_void_p,
    ctypes.c_size_t,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_int,
    ctypes.c_long,
]
_libc.munmap.restype = ctypes.c_int
_libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
_libc.madvise.restype = ctypes.c_int
_libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]


def map_file(descriptor: int, length: int) -> Any:
    """Maps `length` bytes of the file, shared, readable and writable, as an array. Errors: OSError.

    The mapping ends with the last reference to the array, views of its bytes included; in a forked child for itself.
    """
    address = _map(descriptor, length)
    array = (ctypes.c_ubyte * length).from_address(address)
    # At the interpreter's exit views may still be in use; the process takes the mapping with it.
    weakref.finalize(array, _unmap, address, length).atexit = False
    return array


def _map(descriptor: int, length: int) -> int:
    """Maps the file. Returns the address."""
    protection = mmap.PROT_READ | mmap.PROT_WRITE
    address = _libc.mmap(None, length, protection, mmap.MAP_SHARED, descriptor, 0)
    if address is None or address == _MAP_FAILED:
        raise _os_error()
    return int(address)


def populate(address: int, length: int) -> None:
    """Gives this process a page table entry for every page, so that the first access to none of them waits.

    Other threads run meanwhile. By a read, which maps many neighbouring pages of the file at once; memory files need no
    note of the first write, so the pages are mapped writable. A failure changes nothing but the time of first accesses,
    so none is reported: a kernel before 5.14 knows no such advice.
    """
    _libc.madvise(address, length, _MADV_POPULATE_READ)


def map_shared(descriptor: int, length: int) -> Tuple[int, memoryview]:
    """Maps a file that forked children must not have, as both would write it. Returns address and bytes.

    The mapping ends with the last view of the bytes. Errors: OSError.
    """
    address = _map(descriptor, length)
    if _libc.madvise(address, length, _MADV_DONTFORK) != 0:
        failure = _os_error()
        _unmap(address, length)
        raise failure
    array = (ctypes.c_ubyte * length).from_address(address)
    weakref.finalize(array, _unmap_in, _fork.generation(), address, length).atexit = False
    return address, memoryview(array).cast("B")


def _unmap(address: int, length: int) -> None:
    """Ends a mapping."""
    _libc.munmap(address, length)


def _unmap_in(generation: int, address: int, length: int) -> None:
    """Ends a mapping that children do not have: there, something else may be at its address."""
    if generation == _fork.generation():
        _unmap(address, length)


def _os_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
