"""The sync side of every object: close and `with`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from . import errors
from ._effects import Result, Steps
from ._handle import Handle
from ._runner import SyncLink

Self = TypeVar("Self", bound="SyncHandle")


class SyncHandle(Handle):
    """A handle whose operations wait."""

    if TYPE_CHECKING:
        _link: SyncLink

    def _run(self, steps: Steps[Result]) -> Result:
        return self._link.run(steps)

    def close(self) -> None:
        """Ends the object now; a second time, and after the session's end, it does nothing. Errors: InUse."""
        if self._link.usable():
            try:
                self._link.run(self._close_steps())
            except errors.SessionLost:
                pass  # Meanwhile.
        self._let_go()

    def __enter__(self: Self) -> Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
