"""Memory and its registrations."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence, Tuple, Union

from . import _amounts, _memory, _pages, _provision, errors

from ._memory import MemoryBase, RegionBase
from ._runner import SyncHandle
from .remote import RemoteRegion


class Region(SyncHandle, RegionBase):
    __doc__ = RegionBase.__doc__


class FastRegion(SyncHandle, _pages.FastRegionBase):
    __doc__ = _pages.FastRegionBase.__doc__

    def remote_token(self) -> int:
        """The token of the last posted FastRegister; `Pending.tokens` has it too."""
        return self._run(self._token_steps())


class LogicalMapping(SyncHandle, _pages.LogicalMappingBase):
    __doc__ = _pages.LogicalMappingBase.__doc__


class MemoryWindow(SyncHandle, _pages.WindowBase):
    __doc__ = _pages.WindowBase.__doc__

    def remote_token(self) -> int:
        """The token of the last posted Bind; `Pending.tokens` has it too. Errors: Refused (WINDOW_NOT_BOUND)."""
        return self._run(self._token_steps())


class Memory(SyncHandle, MemoryBase):
    __doc__ = MemoryBase.__doc__

    def register(
        self, offset: int = 0, length: Optional[int] = None, *, remote: str = "", local_write: bool = True
    ) -> Region:
        """Registers `length` bytes from byte `offset`; by default all.

        `remote` is what peers may do: "", "r", "w" or "rw". `local_write` lets this process's own receives and reads
        write into it; remote "w" includes it.
        Errors: InvalidArgument, QuotaExceeded, Refused, SessionLost.
        """
        flags = _amounts.region_flags(remote, local_write)
        return self._run(_memory.register(self._link, Region, [self.part(offset, length)], flags))

    def provision(
        self, ranges: Sequence[Tuple[int, int]], *, remote: str = "", local_write: bool = True
    ) -> List[Union[Region, errors.Error]]:
        """Registers each range, (offset, length) in bytes, as a region of its own, in one call.

        Returns for each range its region or its error; one that fails does not stop the others.
        """
        flags = _amounts.region_flags(remote, local_write)
        return self._run(_provision.register(self._link, Region, self, ranges, flags))

    def map_pages(self, offset: int = 0, length: Optional[int] = None) -> LogicalMapping:
        """The pages behind a range, for fast registration. Errors: QuotaExceeded, Refused."""
        return self._run(_pages.map_pages(self._link, LogicalMapping, [self.part(offset, length)]))


def numpy_array(memory: MemoryBase, shape: Any, dtype: Any = "uint8", *, offset: int = 0) -> Any:
    """A writable numpy array of `shape` over the memory's bytes from byte `offset`, without a copy.

    `shape` is an int or a tuple of ints, in elements of `dtype`. Errors: ImportError without numpy; ValueError where
    the array does not fit.
    """
    import numpy

    return numpy.ndarray(shape, dtype, memory.view, offset)


__all__: Tuple[str, ...] = (
    "FastRegion",
    "LogicalMapping",
    "Memory",
    "MemoryWindow",
    "Region",
    "RemoteRegion",
    "numpy_array",
)
