"""What a file or a folder is, in words: `bitextmine.info.describe`. The command itself is tried in tests/cli/."""

import json

import numpy as np
import pytest

from bitextmine.embeddings.writer import EmbeddingWriter
from bitextmine.errors import BitextmineError
from bitextmine.info import describe


def test_an_unfinished_embedding(tmp_path):
    npy = tmp_path / "c.npy"
    with EmbeddingWriter(npy, 10, 2, {"model": "small"}) as writer:
        writer.write(0, np.zeros((3, 2)))
    facts = describe(npy)
    assert (facts["what"].split(";")[0], facts["rows"]) == ("unfinished embedding", "3 of 10")
    assert describe(f"{npy}.part") == facts and facts["model"] == "small"


def test_a_mined_file_by_its_name_or_by_its_manifest(tmp_path):
    mined = tmp_path / "out.tsv"
    mined.write_text("1.5\ta\tb\n")
    about = {
        "kind": "bitext",
        "pairs": 12345,
        "source": {"lines": 7, "corpus": ""},
        "notes": ["a", "b"],
        "none": [],
    }
    (tmp_path / "out.tsv.json").write_text(json.dumps(about))
    wanted = {"what": "bitext", "pairs": "12,345", "source lines": "7", "notes": "a, b"}
    assert describe(mined) == describe(f"{mined}.json") == wanted


def test_what_is_none_of_these(tmp_path):
    with pytest.raises(BitextmineError, match=r"config\.json: no such file"):
        describe(tmp_path)
    with pytest.raises(
        BitextmineError, match="nosuch: no such file or folder, and not one of the built-in encoders"
    ):
        describe(tmp_path / "nosuch")
    with pytest.raises(BitextmineError, match="no such file"):
        describe(tmp_path / "nosuch.fr")
