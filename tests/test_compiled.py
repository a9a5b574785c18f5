"""The loader of compiled modules: what it takes, what it refuses, and what the environment asks for."""

from __future__ import annotations

import ctypes
import dataclasses
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import numpy as np
import pytest

from bitextmine import compiled
from bitextmine.alignment import program as align_native
from bitextmine.compiled import (
    ADDRESS,
    FLOATS,
    INT32,
    INT32S,
    INT64,
    NOTHING,
    ROWS,
    Interface,
    NotBuilt,
    Refused,
)
from bitextmine.embeddings import held
from bitextmine.encoder import native as encoder_native
from bitextmine.errors import BitextmineError
from bitextmine.search import native as search_native

INTERFACES = {
    each.name: each
    for each in (encoder_native.INTERFACE, search_native.INTERFACE, align_native.INTERFACE, held.INTERFACE)
}
COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
LIBRARY = f"_made{EXTENSION_SUFFIXES[0]}"

# A module of two functions and a structure, as Python sees it and in C. The C file can be told to differ.
EXPECTED = Interface(
    "bitextmine._made",
    version=1,
    functions={
        "total": (INT64, INT32S, INT64, ROWS, FLOATS),
        "nothing": (NOTHING, ADDRESS),
        "none": (INT32,),
    },
    sizes={"pair": 16},
)
SOURCE = """
#include "compiled.h"
#ifndef COUNT
#define COUNT int64_t
#endif
#ifndef VERSION
#define VERSION 1
#endif
#ifndef USABLE
#define USABLE 1
#endif
typedef struct { int64_t a; int32_t b; MORE } pair;
#ifndef KIND
#define KIND int32_t
#endif
#ifdef WITHOUT
#define NONE(F)
#else
#define NONE(F) F(int32_t, none, void)
#endif
#define FUNCTIONS(F) \\
    F(int64_t, total, const KIND *, COUNT, const void *, float *) \\
    F(void, nothing, pair *) NONE(F)
#define STRUCTURES(S) S(pair)
PROTOTYPES(FUNCTIONS)
#ifndef OLD
INTERFACE(VERSION, USABLE, FUNCTIONS, STRUCTURES)
#endif
int64_t total(const KIND *x, COUNT n, const void *rows, float *out) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (int64_t)x[i];
    if (out) out[0] = (float)sum + (rows ? ((const uint8_t *)rows)[0] : 0);
    return sum;
}
void nothing(pair *p) { p->b = 7; }
int32_t none(void);
int32_t none(void) { return 5; }
"""


@pytest.fixture(scope="module")
def build(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Compiles the module with further definitions; returns its folder."""

    def make(*definitions: str) -> Path:
        if COMPILER is None:
            pytest.skip("no C compiler")
        folder = tmp_path_factory.mktemp("made")
        (folder / "made.c").write_text(SOURCE)
        more = [] if any("MORE" in each for each in definitions) else ["-DMORE="]
        flags = ["-shared", "-fPIC", f"-I{root / 'bitextmine'}", *more, *definitions]
        subprocess.run([COMPILER, *flags, "-o", folder / LIBRARY, folder / "made.c"], check=True)
        return folder

    return make


@pytest.mark.parametrize("name", INTERFACES)
def test_what_was_demanded_is_there(name: str) -> None:
    """Fails where BITEXTMINE_COMPILED=require (.ci/run sets it) and the module was not built or is stale."""
    if os.environ.get(compiled.VARIABLE) == "off":
        pytest.skip(f"{compiled.VARIABLE} is off")
    try:
        compiled.load(INTERFACES[name], INTERFACES[name].folder)
    except NotBuilt as e:
        if os.environ.get(compiled.VARIABLE) == "require":
            raise
        pytest.skip(str(e))


def test_a_build_that_agrees_is_called(build: Callable[..., Path]) -> None:
    library = compiled.load(EXPECTED, build())
    assert library is not None
    numbers, out = np.arange(5, dtype=np.int32), np.zeros(1, dtype=np.float32)
    assert library.total(numbers, 5, None, None) == 10
    assert library.total(numbers, 5, np.array([3], dtype=np.uint8), out) == 10 and out[0] == 13
    assert library.none() == 5
    room = (ctypes.c_int32 * 4)()
    assert library.nothing(ctypes.byref(room)) is None and room[2] == 7


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (np.arange(5), "expected int32, got int64"),
        (np.arange(10, dtype=np.int32)[::2], "contiguous"),
        ([1, 2], "expected an array, got list"),
    ],
)
def test_what_c_would_misread_is_refused(wrong: object, said: str, build: Callable[..., Path]) -> None:
    library = compiled.load(EXPECTED, build())
    assert library is not None
    with pytest.raises(ctypes.ArgumentError, match=said):
        library.total(wrong, 2, None, None)
    with pytest.raises(ctypes.ArgumentError):
        library.total(None, "2", None, None)
    with pytest.raises(TypeError):
        library.total(None, 2)


@pytest.mark.parametrize(
    ("definitions", "said"),
    [
        (["-DOLD"], "does not say what functions it has"),
        (["-DVERSION=2"], "interface 2, expected 1"),
        (["-DCOUNT=int32_t"], "total lIiPF, expected lIlPF"),
        (["-DKIND=float"], "total lFlPF, expected lIlPF"),
        (["-DWITHOUT"], "none missing, expected iv"),
        (["-DMORE=int64_t c;"], "pair 24 bytes, expected 16 bytes"),
    ],
    ids=["before tables", "version", "number", "pointer", "function", "structure"],
)
def test_a_stale_build_is_refused(definitions: list[str], said: str, build: Callable[..., Path]) -> None:
    folder = build(*definitions)
    with pytest.raises(Refused) as e:
        compiled.load(EXPECTED, folder)
    assert said in str(e.value) and str(folder / LIBRARY) in str(e.value)
    assert not isinstance(e.value, NotBuilt)


def test_a_build_for_another_processor_is_left_aside(build: Callable[..., Path]) -> None:
    assert compiled.load(EXPECTED, build("-DUSABLE=0")) is None


def test_a_file_that_is_no_library_is_refused(tmp_path: Path) -> None:
    (tmp_path / LIBRARY).write_bytes(b"\x7fELF not really" * 50)
    with pytest.raises(Refused, match="not a library for this machine"):
        compiled.load(EXPECTED, tmp_path)


def test_a_build_for_another_python_alone_is_named(tmp_path: Path) -> None:
    with pytest.raises(NotBuilt, match="not built"):
        compiled.load(EXPECTED, tmp_path)
    (tmp_path / "_made.c").touch()
    with pytest.raises(NotBuilt):
        compiled.load(EXPECTED, tmp_path)
    (tmp_path / "_made.cpython-26-vax.so").touch()
    with pytest.raises(Refused, match=f"only _made.cpython-26-vax.so, expected {LIBRARY}") as e:
        compiled.load(EXPECTED, tmp_path)
    assert not isinstance(e.value, NotBuilt)


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has loaded nothing yet, with no wish in its environment."""
    monkeypatch.setattr(compiled, "_LOADED", {})
    monkeypatch.delenv(compiled.VARIABLE, raising=False)


@pytest.mark.usefixtures("fresh")
def test_what_is_wanted_of_a_library_that_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / LIBRARY).write_text("garbage")
    monkeypatch.setattr(Interface, "folder", tmp_path)
    with caplog.at_level(logging.WARNING, "bitextmine"):
        assert compiled.library(EXPECTED) is None
        assert compiled.library(EXPECTED) is None
        (record,) = caplog.records
        assert str(tmp_path / LIBRARY) in record.getMessage() and "pip install" in record.getMessage()
        monkeypatch.setenv(compiled.VARIABLE, "require")
        with pytest.raises(BitextmineError, match=r"not a library for this machine.*require.*pip install"):
            compiled.library(EXPECTED)
        for wish in ("off", "auto", ""):
            monkeypatch.setenv(compiled.VARIABLE, wish)
            assert compiled.library(EXPECTED) is None
        monkeypatch.setenv(compiled.VARIABLE, "yes")
        with pytest.raises(BitextmineError, match="'yes'; it may be auto, off, require"):
            compiled.library(EXPECTED)
    assert len(caplog.records) == 1


@pytest.mark.usefixtures("fresh")
def test_what_is_wanted_of_a_library_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Interface, "folder", tmp_path)
    other = dataclasses.replace(EXPECTED, module="bitextmine.search._other")
    with caplog.at_level(logging.WARNING, "bitextmine"):
        for interface in (EXPECTED, other, EXPECTED):
            assert compiled.library(interface) is None
        (record,) = caplog.records  # once for all of them
        assert "ten times as slowly" in record.getMessage() and "C compiler" in record.getMessage()
    monkeypatch.setenv(compiled.VARIABLE, "require")
    with pytest.raises(BitextmineError, match=r"not built.*require"):
        compiled.library(EXPECTED)


@pytest.mark.usefixtures("fresh")
def test_off_leaves_a_good_library_aside(build: Callable[..., Path], monkeypatch: pytest.MonkeyPatch) -> None:
    folder = build()
    monkeypatch.setattr(Interface, "folder", folder)
    monkeypatch.setenv(compiled.VARIABLE, "off")
    assert compiled.library(EXPECTED) is None
    monkeypatch.setenv(compiled.VARIABLE, "require")
    assert compiled.library(EXPECTED) is compiled.library(EXPECTED) is not None


def test_the_command_works_with_the_plain_path(bitextmine, tmp_path: Path) -> None:
    (tmp_path / "corpus.fr").write_text("Bonjour.\nLa séance est levée.\n\nBonjour.\n", encoding="utf-8")
    for out, wish in (("a.npy", "off"), ("b.npy", "auto")):
        bitextmine("embed", "corpus.fr", "--out", out, cwd=tmp_path, env={compiled.VARIABLE: wish})
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    said = bitextmine.fails("embed", "corpus.fr", "--force", cwd=tmp_path, env={compiled.VARIABLE: "no"})
    assert compiled.VARIABLE in said


def test_a_copy_of_the_package_without_its_libraries(root: Path, tmp_path: Path) -> None:
    """What CI asks for fails in a checkout in which nothing was compiled, and works without the demand."""
    package = tmp_path / "bitextmine"
    shutil.copytree(
        root / "bitextmine",
        package,
        ignore=shutil.ignore_patterns("__pycache__", "packaged", "*.so", "*.pyd"),
    )
    code = (
        "from bitextmine.encoder import native; from bitextmine.search import native as search;"
        "print(native.library(), search.library(), native.__file__)"
    )

    def run(wish: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, compiled.VARIABLE: wish, "PYTHONPATH": str(tmp_path)}
        return subprocess.run(
            [sys.executable, "-c", code], env=env, cwd=tmp_path, capture_output=True, text=True, check=False
        )

    assert run("auto").stdout.split() == ["None", "None", str(package / "encoder" / "native.py")]
    assert "BitextmineError" in run("require").stderr
