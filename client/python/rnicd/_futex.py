"""Waiting for a word of shared memory: with a futex, and busily for a short time before."""

from __future__ import annotations

import ctypes
import time

_FUTEX_NUMBER = 202
"""Of x86-64, the only processor on which the package uses shared memory."""
_FUTEX_WAIT = 0
"""Not FUTEX_WAIT_PRIVATE: the daemon wakes from another process."""
_SHORTEST_SPIN = 500e-9
"""Seconds; less is one look."""
_SHORT_WAIT = 4
"""A wait of this many times the bound would have been short, had nobody slept: waking up is most of it."""
_LOOKS = 16
"""Between two readings of the clock."""


class _Timespec(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]


# A CDLL, not a PyDLL: it lets other threads run during the call.
_libc = ctypes.CDLL(None)
_libc.syscall.restype = ctypes.c_long
_libc.syscall.argtypes = [
    ctypes.c_long,
    ctypes.c_void_p,
    ctypes.c_long,
    ctypes.c_long,
    ctypes.POINTER(_Timespec),
    ctypes.c_void_p,
    ctypes.c_long,
]
_libc.sched_getcpu.restype = ctypes.c_int
_libc.sched_getcpu.argtypes = []


def wait(address: int, value: int, seconds: float) -> None:
    """Sleeps while the 4 bytes at `address` are `value`, at most that long; a signal ends it early."""
    whole = int(seconds)
    limit = _Timespec(whole, int((seconds - whole) * 1e9))
    # A value above 2^31 is passed as the kernel compares it, by its low 32 bits.
    _libc.syscall(_FUTEX_NUMBER, address, _FUTEX_WAIT, value, ctypes.byref(limit), None, 0)


def processor() -> int:
    """The processor that the thread runs on, plus 1; 0 if unknown."""
    return int(_libc.sched_getcpu()) + 1


class Spin:
    """Looks at a word for a short time before its caller sleeps: waking a processor costs tens of microseconds.

    Harmful where the daemon needs this processor, and useless where the wait is long; both are noticed.
    """

    def __init__(self, longest: float) -> None:
        self._longest = longest
        self._seconds = longest

    def until_changed(self, words: memoryview, index: int, value: int, here: int, daemon: int) -> bool:
        """True as soon as `words[index]` is not `value`. `here` and `daemon`: the processors of both, plus 1, or 0."""
        if words[index] != value:
            return True
        if self._longest <= 0 or daemon == 0 or daemon == here:
            return False
        end = time.monotonic() + self._seconds
        while True:
            for _ in range(_LOOKS):
                if words[index] != value:
                    return True
            if time.monotonic() >= end:
                return False

    def record(self, waited: float) -> None:
        """What a wait took in all, the sleep included: the next one spins accordingly."""
        if waited <= _SHORT_WAIT * self._longest:
            self._seconds = self._longest
        else:
            self._seconds = max(self._seconds / 2, min(_SHORTEST_SPIN, self._longest))
