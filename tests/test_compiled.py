"""The loader of compiled modules: what it takes, what it refuses, and what the environment asks for."""

import ctypes
import hashlib
import os
import shutil
import subprocess
from importlib.machinery import EXTENSION_SUFFIXES

import numpy as np
import pytest

from bitextmine import compiled
from bitextmine.compiled import MODULES, Module, Refused
from bitextmine.errors import BitextmineError
from bitextmine.search.fused import TileArguments

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
LIBRARY = f"_made{EXTENSION_SUFFIXES[0]}"
WISH = os.environ.get(compiled.VARIABLE)

# A module of two functions and a structure, as Python sees it and in C. The C file can be told to differ.
EXPECTED = Module("_made", 1)
SOURCE = """
#include "compiled.h"
#ifndef VERSION
#define VERSION 1
#endif
typedef struct { int64_t a; int32_t b; } pair;
#define FUNCTIONS(F) \\
    F(int64_t, total, const int32_t *, int64_t, const void *, float *) \\
    F(void, nothing, pair *) F(int32_t, none, void)
#define STRUCTURES(S) S(pair)
PROTOTYPES(FUNCTIONS)
#ifndef OLD
INTERFACE(VERSION, FUNCTIONS, STRUCTURES)
#endif
int64_t total(const int32_t *x, int64_t n, const void *rows, float *out) {
    int64_t sum = 0;
    for (int64_t i = 0; i < n; i++) sum += (int64_t)x[i];
    if (out) out[0] = (float)sum + (rows ? ((const uint8_t *)rows)[0] : 0);
    return sum;
}
void nothing(pair *p) { p->b = 7; }
int32_t none(void) { return 5; }
"""


@pytest.fixture
def build(root, tmp_path):
    """Compile the module with further definitions and load it."""

    def make(*definitions):
        if COMPILER is None:
            pytest.skip("no C compiler")
        (tmp_path / "made.c").write_text(SOURCE)
        flags = ["-shared", "-fPIC", f"-I{root / 'bitextmine'}", *definitions]
        subprocess.run([COMPILER, *flags, "-o", tmp_path / LIBRARY, tmp_path / "made.c"], check=True)
        return compiled.load(EXPECTED)

    return make


@pytest.fixture(autouse=True)
def fresh(tmp_path, monkeypatch):
    """As in a process that has loaded nothing yet, with no wish in its environment and the modules in `tmp_path`."""
    monkeypatch.setattr(compiled, "_LOADED", {})
    monkeypatch.setattr(compiled, "_PACKAGE", tmp_path)
    monkeypatch.setitem(MODULES, "made", EXPECTED)
    monkeypatch.delenv(compiled.VARIABLE, raising=False)


@pytest.mark.parametrize("name", MODULES)
def test_required_modules_load(name, root, monkeypatch):
    """Fails where BITEXTMINE_COMPILED=require (.ci/run sets it) and the module was not built or is stale."""
    if WISH == "off":
        pytest.skip(f"{compiled.VARIABLE} is off")
    monkeypatch.setattr(compiled, "_PACKAGE", root / "bitextmine")
    try:
        compiled.load(MODULES[name])
    except Refused as e:
        if WISH == "require":
            raise
        pytest.skip(str(e))


# The version of each module, and the first digits of the SHA-256 of its C files.
SOURCES = {
    "alignment": (2, "dd01fd6e382e61c8"),
    "encoder": (5, "1e543dd017471698"),
    "languages": (1, "ccfcbced34c52695"),
    "search": (5, "25971393d3677eaa"),
}


@pytest.mark.parametrize("name", MODULES)
def test_changed_sources_have_another_version(name, root):
    """A build of the older source would be called with arguments that it takes for something else."""
    files = sorted((root / "bitextmine" / name).glob("*.[ch]"))
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:16]
    assert (MODULES[name].version, digest) == SOURCES[name], (
        "if a function takes other arguments or works differently now, raise the version in compiled.py and in "
        "INTERFACE; then state it here"
    )


def test_structures_have_the_sizes_of_the_table(root, monkeypatch):
    monkeypatch.setattr(compiled, "_PACKAGE", root / "bitextmine")
    if (library := compiled.library("search")) is None:
        pytest.skip("no compiled search here")
    table = compiled._Interface.in_dll(library, "bitextmine_interface")
    assert [entry.size for entry in table.entries[: table.count] if not entry.types] == [
        ctypes.sizeof(TileArguments)
    ]


def test_a_build_that_agrees_is_called(build):
    library = build()
    numbers, out = np.arange(5, dtype=np.int32), np.zeros(1, dtype=np.float32)
    assert library.total(numbers, 5, None, None) == 10
    assert library.total(numbers, 5, np.array([3], dtype=np.uint8), out) == 10 and out[0] == 13
    assert library.none() == 5
    room = (ctypes.c_int32 * 4)()
    assert library.nothing(ctypes.byref(room)) is None and room[2] == 7


def test_arguments_that_c_would_misread_are_refused(build):
    library = build()
    for wrong, said in (
        (np.arange(5), "expected int32, got int64"),
        (np.arange(10, dtype=np.int32)[::2], "contiguous"),
        ([1, 2], "expected an array, got list"),
    ):
        with pytest.raises(ctypes.ArgumentError, match=said):
            library.total(wrong, 2, None, None)
    with pytest.raises(ctypes.ArgumentError, match="contiguous"):
        library.total(None, 2, np.zeros((3, 4))[:, :2], None)
    with pytest.raises(ctypes.ArgumentError):
        library.total(None, "2", None, None)
    with pytest.raises(TypeError):
        library.total(None, 2)


@pytest.mark.parametrize(
    ("definitions", "said"),
    [(["-DOLD"], "no table of its functions"), (["-DVERSION=2"], "interface 2, expected 1")],
)
def test_a_stale_build_is_refused(definitions, said, build):
    with pytest.raises(Refused, match=f"{LIBRARY}.*{said}"):
        build(*definitions)


def test_a_build_for_another_python_is_named(tmp_path):
    (tmp_path / "_made.c").touch()
    with pytest.raises(Refused, match=f"{LIBRARY}: not built"):
        compiled.load(EXPECTED)
    (tmp_path / "_made.cpython-26-vax.so").touch()
    with pytest.raises(Refused, match=f"{LIBRARY}: only _made.cpython-26-vax.so is there"):
        compiled.load(EXPECTED)


def test_a_refused_library_is_warned_of_once_or_an_error(tmp_path, monkeypatch, caplog):
    (tmp_path / LIBRARY).write_bytes(b"\x7fELF not really" * 50)
    for wish in (None, "auto", "off", ""):
        if wish is not None:
            monkeypatch.setenv(compiled.VARIABLE, wish)
        assert compiled.library("made") is compiled.library("search") is None
    (record,) = caplog.records
    for words in (str(tmp_path / LIBRARY), "ten times as slowly", "pip install"):
        assert words in record.getMessage()
    monkeypatch.setenv(compiled.VARIABLE, "require")
    with pytest.raises(BitextmineError, match=r"not a library for this machine.*require.*pip install"):
        compiled.library("made")
    monkeypatch.setenv(compiled.VARIABLE, "yes")
    with pytest.raises(BitextmineError, match="'yes'; it may be auto, off, require"):
        compiled.library("made")


def test_the_command_works_with_the_plain_path(bitextmine, tmp_path):
    (tmp_path / "corpus.fr").write_text("Bonjour.\nLa séance est levée.\n\nBonjour.\n", encoding="utf-8")
    for out, wish in (("a.npy", "off"), ("b.npy", "auto")):
        bitextmine("embed", "corpus.fr", "--out", out, cwd=tmp_path, env={compiled.VARIABLE: wish})
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "b.npy").read_bytes()
    said = bitextmine.fails("embed", "corpus.fr", "--force", cwd=tmp_path, env={compiled.VARIABLE: "no"})
    assert compiled.VARIABLE in said
