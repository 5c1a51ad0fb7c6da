"""Memory and its registrations, for asyncio."""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple, Union

from .. import _amounts, _memory, _pages, _provision, errors
from .._memory import MemoryBase, RegionBase
from ._runner import AsyncHandle, Opening


class Region(AsyncHandle, RegionBase):
    __doc__ = RegionBase.__doc__


class FastRegion(AsyncHandle, _pages.FastRegionBase):
    __doc__ = _pages.FastRegionBase.__doc__

    async def remote_token(self) -> int:
        """The token of the last posted FastRegister; `Pending.tokens` has it too."""
        return await self._run(self._token_steps())


class LogicalMapping(AsyncHandle, _pages.LogicalMappingBase):
    __doc__ = _pages.LogicalMappingBase.__doc__


class MemoryWindow(AsyncHandle, _pages.WindowBase):
    __doc__ = _pages.WindowBase.__doc__

    async def remote_token(self) -> int:
        """The token of the last posted Bind; `Pending.tokens` has it too. Errors: Refused (WINDOW_NOT_BOUND)."""
        return await self._run(self._token_steps())


class Memory(AsyncHandle, MemoryBase):
    __doc__ = MemoryBase.__doc__

    def register(
        self, offset: int = 0, length: Optional[int] = None, *, remote: str = "", local_write: bool = True
    ) -> Opening[Region]:
        """As `rnicd.Memory.register`."""
        flags = _amounts.region_flags(remote, local_write)
        return Opening(self._run(_memory.register(self._link, Region, [self.part(offset, length)], flags)))

    async def provision(
        self, ranges: Sequence[Tuple[int, int]], *, remote: str = "", local_write: bool = True
    ) -> List[Union[Region, errors.Error]]:
        """As `rnicd.Memory.provision`."""
        flags = _amounts.region_flags(remote, local_write)
        return await self._run(_provision.register(self._link, Region, self, ranges, flags))

    def map_pages(self, offset: int = 0, length: Optional[int] = None) -> Opening[LogicalMapping]:
        """As `rnicd.Memory.map_pages`."""
        return Opening(self._run(_pages.map_pages(self._link, LogicalMapping, [self.part(offset, length)])))
