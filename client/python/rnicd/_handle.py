"""The base of every object that the daemon knows by an id."""

from __future__ import annotations

import weakref
from typing import Any, ClassVar, NoReturn

from . import errors
from ._effects import Call, Steps
from ._link import Link


class Handle:
    """An object of a session.

    It is closed by `close`, by leaving a `with` block, or, when nothing refers to it any more, before the session
    creates its next object. Closing twice is fine, and so is closing after the session has ended. Threads: safe.
    """

    # Children have lower ranks than what they use.
    _RANK: ClassVar[int] = 0
    _link: Link
    _ident: int
    _finalizer: Any

    def _adopt(self, link: Link, ident: int) -> None:
        """Takes over the object `ident` of the session."""
        self._link = link
        self._ident = ident
        self._guard()

    def _guard(self) -> None:
        self._finalizer = weakref.finalize(self, self._link.drop, self._RANK, self._close_call(self._ident))
        self._finalizer.atexit = False

    @classmethod
    def _close_call(cls, ident: int) -> Call:
        """The call that ends the object."""
        raise NotImplementedError

    def _close_steps(self) -> Steps[None]:
        # Only one thread gets the finalizer's arguments.
        if self._finalizer.detach() is None or not self._link.usable():
            return
        try:
            yield self._close_call(self._ident)
        except errors.SessionLost:
            return
        except BaseException:
            self._guard()
            raise

    def _let_go(self) -> None:
        """Ends what the object has in this process, once it is closed."""

    @property
    def closed(self) -> bool:
        """Whether the object was closed. False after the session's end, unless it was closed before."""
        return not self._finalizer.alive

    @property
    def id(self) -> int:
        """The daemon's id of the object. Errors: Closed."""
        if not self._finalizer.alive:
            raise errors.Closed(f"this {type(self).__name__} is closed")
        return self._ident

    def __repr__(self) -> str:
        return f"<rnicd.{type(self).__name__} {'closed' if self.closed else 'open'}>"

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} belongs to its process; send RemoteRegion.to_bytes() to peers")
