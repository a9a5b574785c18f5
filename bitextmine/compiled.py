"""The compiled modules: finding one, making sure that it is what Python takes it for, loading it.

A compiled module is a library of C functions beside the Python file that uses them. It exports a table of its
functions, with the types of their arguments, and of the sizes of its structures (`compiled.h`). Python says the same
with an `Interface`. Only where both agree are the functions called: a library that was built from other sources, or for
another machine, is refused with a warning, and NumPy or torch do its work, with the same results. Where none was built
at all, that is said once, as all takes about ten times as long.

The environment variable BITEXTMINE_COMPILED says what is wanted: "require" makes a library that is missing or refused
an error, "off" leaves all of them aside, "auto" is as above, and so is no value.
"""

from __future__ import annotations

import ctypes
import logging
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.errors import BitextmineError

__all__ = [
    "ADDRESS",
    "FLOATS",
    "INT8S",
    "INT32",
    "INT32S",
    "INT64",
    "INT64S",
    "NOTHING",
    "ROWS",
    "UINT8S",
    "VARIABLE",
    "Interface",
    "NotBuilt",
    "Refused",
    "Type",
    "library",
    "load",
]

log = logging.getLogger(__name__)

VARIABLE = "BITEXTMINE_COMPILED"
WISHES = ("auto", "off", "require")
REBUILD = "pip install --force-reinstall --no-deps bitextmine (in a checkout: pip install --editable .)"

_LOCK = threading.Lock()
_LOADED: dict[str, ctypes.CDLL | Refused | None] = {}


class Refused(Exception):
    """A library that cannot be used; the text says which, what was found in it and what was expected."""


class NotBuilt(Refused):
    """There is no library, as where no C compiler was."""


@dataclass(frozen=True)
class Type:
    """A type of C: its letter in a library's table (`compiled.h`) and what ctypes makes of a value."""

    letter: str
    ctype: Any


class _Array:
    """Takes a C-contiguous array, of ``dtype`` unless that is None, by the address of its numbers; None where the
    function takes a null pointer for "there is none". As an entry of argtypes it turns what does not fit into
    ctypes.ArgumentError, where C would read or write whatever is there."""

    def __init__(self, dtype: np.dtype[Any] | None) -> None:
        self._dtype = dtype

    def from_param(self, given: np.ndarray | None) -> ctypes.c_void_p | None:
        if given is None:
            return None
        if not isinstance(given, np.ndarray):
            raise TypeError(f"expected an array, got {type(given).__name__}")
        if self._dtype is not None and given.dtype != self._dtype:
            raise TypeError(f"expected {self._dtype}, got {given.dtype}")
        if not given.flags.c_contiguous:
            raise TypeError(f"expected a contiguous array, got strides {given.strides}")
        return ctypes.c_void_p(given.ctypes.data)


INT32, INT64 = Type("i", ctypes.c_int32), Type("l", ctypes.c_int64)
NOTHING = Type("v", None)
ADDRESS = Type("P", ctypes.c_void_p)  # of something that the library made, or of a ctypes structure
# Arrays of numbers of one dtype, by the address of the first, or None.
INT8S, UINT8S = Type("B", _Array(np.dtype(np.int8))), Type("U", _Array(np.dtype(np.uint8)))
INT32S, INT64S = Type("I", _Array(np.dtype(np.int32))), Type("L", _Array(np.dtype(np.int64)))
FLOATS = Type("F", _Array(np.dtype(np.float32)))
ROWS = Type("P", _Array(None))  # an array of a dtype that another argument tells


@dataclass(frozen=True)
class Interface:
    """What Python expects of a compiled module.

    module: its name, as in pyproject.toml; version: that of its table, one more whenever a function does something
    else with the same arguments; functions: what each returns, then its arguments; sizes: of its structures, in bytes.
    """

    module: str
    version: int
    functions: Mapping[str, tuple[Type, ...]]
    sizes: Mapping[str, int] = field(default_factory=dict)

    @property
    def folder(self) -> Path:
        """Where the package keeps the library."""
        return Path(__file__).parent.joinpath(*self.module.split(".")[1:-1])

    @property
    def name(self) -> str:
        return self.module.rpartition(".")[2]

    def letters(self, function: str) -> str:
        """The types of a function as a library's table spells them."""
        kinds = self.functions[function]
        return "".join(kind.letter for kind in (kinds if len(kinds) > 1 else (*kinds, NOTHING)))


class _Entry(ctypes.Structure):
    """`interface_entry` of compiled.h."""

    _fields_ = [("name", ctypes.c_char_p), ("types", ctypes.c_char_p), ("size", ctypes.c_int64)]


class _Table(ctypes.Structure):
    """`interface` of compiled.h."""

    _fields_ = [
        ("version", ctypes.c_int32),
        ("usable", ctypes.c_int32),
        ("count", ctypes.c_int64),
        ("entries", ctypes.POINTER(_Entry)),
    ]


def library(interface: Interface) -> ctypes.CDLL | None:
    """The library of a compiled module, loaded once, its functions ready to be called with what `Interface` names;
    None where it was not built, is not for this kind of processor, is refused (which is logged, once) or is not wanted.

    Raises BitextmineError where BITEXTMINE_COMPILED is "require" and the library was not built or is refused, and for
    another value than auto, off and require.
    """
    wish = os.environ.get(VARIABLE) or "auto"
    if wish not in WISHES:
        raise BitextmineError(f"{VARIABLE} is {wish!r}; it may be {', '.join(WISHES)}")
    if wish == "off":
        return None
    with _LOCK:
        if interface.module not in _LOADED:
            _LOADED[interface.module] = _try(interface, quiet=wish == "require")
        found = _LOADED[interface.module]
    if isinstance(found, Refused):
        if wish == "require":
            raise BitextmineError(f"{found}; {VARIABLE} is require. To build it: {REBUILD}")
        return None
    return found


def _try(interface: Interface, quiet: bool) -> ctypes.CDLL | Refused | None:
    try:
        return load(interface, interface.folder)
    except NotBuilt as e:
        if not (quiet or any(isinstance(other, NotBuilt) for other in _LOADED.values())):
            log.warning(
                "the compiled modules were not built here: going on without them, about ten times as slowly. To build "
                "them: install a C compiler, then %s",
                REBUILD,
            )
        return e
    except Refused as e:
        if not quiet:
            log.warning("%s; going on without it, more slowly. To build it: %s", e, REBUILD)
        return e


def load(interface: Interface, folder: Path) -> ctypes.CDLL | None:
    """Loads the library from a folder; None where it has nothing for this kind of processor.

    Raises NotBuilt where there is none, Refused where there is one that cannot be used.
    """
    path = _find(interface.name, folder)
    try:
        found = ctypes.CDLL(str(path))
    except OSError as e:
        raise Refused(f"{path}: not a library for this machine ({e})") from None
    try:
        table = _Table.in_dll(found, "bitextmine_interface")
    except ValueError:
        raise Refused(
            f"{path}: not a build of this version of bitextmine: it does not say what functions it has"
        ) from None
    if table.version != interface.version:
        raise Refused(
            f"{path}: not a build of this version of bitextmine: interface {table.version}, expected "
            f"{interface.version}"
        )
    if not table.usable:
        return None
    entries = {entry.name.decode(): entry for entry in table.entries[: table.count]}
    for name, size in interface.sizes.items():
        there = f"{entries[name].size} bytes" if name in entries else "missing"
        if there != f"{size} bytes":
            raise Refused(
                f"{path}: not a build of this version of bitextmine: {name} {there}, expected {size} bytes"
            )
    for name, (returns, *arguments) in interface.functions.items():
        expected = interface.letters(name)
        there = (entries[name].types or b"").decode() if name in entries else "missing"
        if there != expected:
            raise Refused(
                f"{path}: not a build of this version of bitextmine: {name} {there}, expected {expected}"
            )
        try:
            function = found[name]
        except AttributeError:
            raise Refused(f"{path}: {name} is missing") from None
        function.restype = returns.ctype
        function.argtypes = [argument.ctype for argument in arguments]
        setattr(found, name, function)  # found[name] makes a new object each time
    return found


def _find(name: str, folder: Path) -> Path:
    for suffix in EXTENSION_SUFFIXES:
        path = folder / f"{name}{suffix}"
        if path.exists():
            return path
    others = sorted(
        path.name for path in folder.glob(f"{name}.*") if path.suffix in (".so", ".pyd", ".dylib")
    )
    if others:
        raise Refused(f"{folder}: only {', '.join(others)}, expected {name}{EXTENSION_SUFFIXES[0]}")
    raise NotBuilt(f"{folder / (name + EXTENSION_SUFFIXES[0])}: not built")
