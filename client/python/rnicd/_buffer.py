"""The buffer protocol of objects that can let go what they export.

Every consumer of a buffer keeps alive what `Py_buffer.obj` names, some of them without keeping the buffer (torch). So a
mapping whose end is to follow its last view must be named there, and not the Memory, which its user may still have.
Before Python 3.12 no class can say so in Python. `Exporter` is a type of the C API that passes the request on: to
PyObject_GetBuffer, for the object in `_exported`. No Python code runs on that way, so a signal cannot interrupt it.
"""

from __future__ import annotations

import ctypes
import operator
from typing import Any

_TPFLAGS_BASETYPE, _TPFLAGS_DEFAULT = 1 << 10, 1 << 18
_BF_GETBUFFER, _BF_RELEASEBUFFER = 1, 2
"""Slots of typeslots.h."""


class _Slot(ctypes.Structure):
    """PyType_Slot."""

    _fields_ = [("slot", ctypes.c_int), ("function", ctypes.c_void_p)]


class _Spec(ctypes.Structure):
    """PyType_Spec."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("basicsize", ctypes.c_int),
        ("itemsize", ctypes.c_int),
        ("flags", ctypes.c_uint),
        ("slots", ctypes.POINTER(_Slot)),
    ]


class _Exported:
    """Converts an exporter to what it exports, as an argument of a C function."""

    from_param = operator.attrgetter("_exported")


_GetBuffer = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_void_p, ctypes.c_int)
_ReleaseBuffer = ctypes.PYFUNCTYPE(None, ctypes.py_object, ctypes.c_void_p)
_pass_on: Any = _GetBuffer(("PyObject_GetBuffer", ctypes.pythonapi))
_pass_on.argtypes = [_Exported, ctypes.c_void_p, ctypes.c_int]
_get_buffer = _GetBuffer(_pass_on)
# Never called, as buffers belong to what is exported. That it is there tells numpy.frombuffer to keep the buffer.
_release_buffer = _ReleaseBuffer(lambda *_: None)
_slots = (_Slot * 3)(
    _Slot(_BF_GETBUFFER, ctypes.cast(_get_buffer, ctypes.c_void_p)),
    _Slot(_BF_RELEASEBUFFER, ctypes.cast(_release_buffer, ctypes.c_void_p)),
    _Slot(0, None),
)
_make_type = ctypes.pythonapi.PyType_FromSpec
_make_type.restype, _make_type.argtypes = ctypes.py_object, [ctypes.POINTER(_Spec)]

Exporter: Any = _make_type(_Spec(b"rnicd.Exporter", 0, 0, _TPFLAGS_DEFAULT | _TPFLAGS_BASETYPE, _slots))
"""Base of classes with the buffer protocol: `_exported` holds, by `exported`, the object whose buffer it is."""


def exported(exporter: Any) -> Any:
    """For `_exported`: an object whose buffer can always be had."""
    return ctypes.py_object(exporter)


NOTHING = exported(bytearray())
"""No bytes. A request that is refused cannot be passed on with its reason."""
Exporter._exported = NOTHING
