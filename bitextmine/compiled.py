"""The compiled modules, and their loader.

A compiled module is a C library beside the Python code that calls it. It exports its version and a table of its
functions, with the types of their arguments (`compiled.h`), which calls are checked by. One of another version than in
`MODULES`, or for another machine, is refused with a warning, and NumPy or torch do its work with the same results. The
environment variable BITEXTMINE_COMPILED can make that an error ("require") or ignore the libraries ("off").
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from dataclasses import dataclass
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.errors import BitextmineError

log = logging.getLogger(__name__)

VARIABLE = "BITEXTMINE_COMPILED"
WISHES = ("auto", "off", "require")
REBUILD = "pip install --force-reinstall --no-deps bitextmine (in a checkout: pip install --editable .)"

_PACKAGE = Path(__file__).parent
_LOCK = threading.Lock()
_LOADED: dict[str, ctypes.CDLL | Refused] = {}


@dataclass(frozen=True)
class Module:
    """A compiled module: its library relative to the package, without suffix, and the version that Python calls."""

    path: str
    version: int


MODULES = {
    "alignment": Module("alignment/_dp", 2),
    "encoder": Module("encoder/_native", 5),
    "languages": Module("languages/_identify", 1),
    "search": Module("search/_fused", 5),
}


class Refused(Exception):
    """A library that is missing or cannot be used; the message names the file, what was found and expected."""


class _Array:
    """An argument type that passes the address of a C-contiguous array; C would misread any other."""

    def __init__(self, dtype: type | None = None) -> None:
        self._dtype = dtype

    def from_param(self, given: Any) -> Any:
        if given is None:
            return None
        if not isinstance(given, np.ndarray):
            if self._dtype is None:
                return ctypes.c_void_p.from_param(given)
            raise TypeError(f"expected an array, got {type(given).__name__}")
        if self._dtype is not None and given.dtype != self._dtype:
            raise TypeError(f"expected {np.dtype(self._dtype)}, got {given.dtype}")
        if not given.flags.c_contiguous:
            raise TypeError(f"expected a contiguous array, got strides {given.strides}")
        return ctypes.c_void_p(given.ctypes.data)


# The letters of compiled.h: v none, i int32, l int64; B, U, I, L, F contiguous int8, uint8, int32, int64, float32 array
# or None; P any array or address.
_ARRAYS = {"B": np.int8, "U": np.uint8, "I": np.int32, "L": np.int64, "F": np.float32, "P": None}
_NUMBERS: dict[str, Any] = {"i": ctypes.c_int32, "l": ctypes.c_int64}
_ARGUMENTS = _NUMBERS | {key: _Array(kind) for key, kind in _ARRAYS.items()}
_RETURNS = _NUMBERS | {"v": None, "P": ctypes.c_void_p}


class _Entry(ctypes.Structure):
    """`interface_entry` of compiled.h."""

    _fields_ = [("name", ctypes.c_char_p), ("types", ctypes.c_char_p), ("size", ctypes.c_int64)]


class _Interface(ctypes.Structure):
    """`interface` of compiled.h."""

    _fields_ = [("version", ctypes.c_int32), ("count", ctypes.c_int64), ("entries", ctypes.POINTER(_Entry))]


def library(name: str) -> ctypes.CDLL | None:
    """Return a module of `MODULES`, loaded once, or None if it is missing, refused (logged once) or not wanted.

    Raises:
        BitextmineError: BITEXTMINE_COMPILED is "require" and the library is missing or refused, or is no known value.
    """
    wish = os.environ.get(VARIABLE) or "auto"
    if wish not in WISHES:
        raise BitextmineError(f"{VARIABLE} is {wish!r}; it may be {', '.join(WISHES)}")
    if wish == "off":
        return None
    with _LOCK:
        if name not in _LOADED:
            try:
                _LOADED[name] = load(MODULES[name])
            except Refused as e:
                if wish != "require" and not any(isinstance(other, Refused) for other in _LOADED.values()):
                    message = "%s; continuing without it, about ten times as slowly. To build it: %s"
                    log.warning(message, e, REBUILD)
                _LOADED[name] = e
        loaded = _LOADED[name]
    if not isinstance(loaded, Refused):
        return loaded
    if wish == "require":
        raise BitextmineError(f"{loaded}; {VARIABLE} is require. To build it: {REBUILD}")
    return None


def load(module: Module) -> ctypes.CDLL:
    """Load a library and set the types of its functions; Refused if it cannot be used."""
    base = _PACKAGE / module.path
    paths = [path for suffix in EXTENSION_SUFFIXES if (path := Path(f"{base}{suffix}")).exists()]
    if not paths:
        others = ", ".join(sorted(path.name for path in base.parent.glob(f"{base.name}*.so")))
        found = f"only {others} is there" if others else "not built, which takes a C compiler"
        raise Refused(f"{base}{EXTENSION_SUFFIXES[0]}: {found}")
    try:
        library = ctypes.CDLL(str(paths[0]))
    except OSError as e:
        raise Refused(f"{paths[0]}: not a library for this machine ({e})") from None
    stale = f"{paths[0]}: compiled from another version of bitextmine"
    try:
        table = _Interface.in_dll(library, "bitextmine_interface")
    except ValueError:
        raise Refused(f"{stale}: no table of its functions") from None
    if table.version != module.version:
        raise Refused(f"{stale}: interface {table.version}, expected {module.version}")
    for entry in table.entries[: table.count]:
        if entry.types:
            name, types = entry.name.decode(), entry.types.decode()
            function = library[name]
            function.restype = _RETURNS[types[0]]
            function.argtypes = [_ARGUMENTS[letter] for letter in types[1:] if letter != "v"]
            setattr(library, name, function)  # library[name] makes a new object each time
    return library
