from __future__ import annotations

import subprocess
import sys

import pytest

from bitextmine.errors import UsageError
from bitextmine.search.options import Arithmetic, Engine, SearchOptions


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "fast"}, "unknown search engine 'fast': expected auto, compiled or torch"),
        (
            {"engine": "torch", "arithmetic": "int3"},
            "unknown arithmetic 'int3': expected int8, .* or float32",
        ),
        (
            {"engine": "torch", "arithmetic": "int8"},
            "int8: engine torch computes in float32, bfloat16 or float16",
        ),
        ({"engine": "compiled", "arithmetic": "float16"}, "engine compiled computes in int8 or float32"),
        ({"arithmetic": "int8"}, "engine auto chooses it itself; name the engine"),
        (
            {"engine": "compiled", "instruction_set": "sse2"},
            "unknown instruction set 'sse2': expected portable, neon, dotprod, avx2, avxvnni",
        ),
        (
            {"engine": "torch", "instruction_set": "avx2"},
            "avx2: engine torch has no choice .*use engine compiled",
        ),
        ({"block_rows": 0}, "block_rows must be at least 1, found 0"),
        ({"threads": -1}, "threads must be at least 1, found -1"),
        ({"memory": 0}, "memory must be at least 1, found 0"),
        ({"memory": "1"}, "memory: '1' is no amount of memory"),
        ({"threads": "2"}, "threads: expected a whole number, found '2'"),
        ({"device": None}, "device: expected the name of a device, found None"),
    ],
)
def test_options_that_go_nowhere(options, message):
    with pytest.raises(UsageError, match=message):
        SearchOptions(**options)


def test_results_and_options_are_imported_without_engines():
    code = (
        "import sys, bitextmine.search.neighbours, bitextmine.search.options\n"
        "found = [name for name in sys.modules if name.startswith('bitextmine.search.engines') or name == 'torch']\n"
        "assert not found, found"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_words_of_a_command_line_are_enough():
    words = SearchOptions(engine=Engine("compiled"), arithmetic=Arithmetic("float32"))
    assert words == SearchOptions(engine=Engine.COMPILED, arithmetic=Arithmetic.FLOAT32)
