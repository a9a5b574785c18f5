"""Data sets for translation, as the library datasets writes and reads them."""

import pytest

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.formats.columns import Columns
from bitextmine.files.formats.table import open_table

from .test_formats import get

PAIRS = [("A cat.", "Eine Katze."), ("A dog.", "Ein Hund."), ("Two\nlines", "Zwei\nZeilen")]
ROWS = {"id": ["a", "b", "c"], "translation": [{"en": src, "de": tgt} for src, tgt in PAIRS]}


def pairs(path):
    columns = Columns(src="en", tgt="de")  # the library sorts them
    assert open_table(path, columns).langs() == ("en", "de")
    return get(path, columns)


def test_parquet_with_translations(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    (tmp_path / "data").mkdir()
    parquet.write_table(pyarrow.table(ROWS), tmp_path / "data/train-00000-of-00001.parquet")
    assert pairs(tmp_path / "data/train-00000-of-00001.parquet") == PAIRS
    assert pairs(tmp_path) == PAIRS
    parquet.write_table(pyarrow.table(ROWS), tmp_path / "data/test-00000-of-00001.parquet")
    with pytest.raises(UsageError, match=r"several splits \(test, train\)"):
        pairs(tmp_path)
    (tmp_path / "none").mkdir()
    with pytest.raises(BitextmineError, match="a folder without files of pairs"):
        open_table(tmp_path / "none")
    (tmp_path / "data/test-00000-of-00001.parquet").write_bytes(b"PAR1")
    (tmp_path / "data/train-00000-of-00001.parquet").unlink()
    with pytest.raises(BitextmineError, match="not a Parquet file"):
        pairs(tmp_path)


def test_folders_of_the_library_and_its_reading_of_ours(bitextmine, tmp_path):
    datasets = pytest.importorskip("datasets")
    features = datasets.Features(
        {"id": datasets.Value("string"), "translation": datasets.Translation(languages=["en", "de"])}
    )

    def load(kind, name, **options):
        there, cache = str(tmp_path / name), str(tmp_path / "cache")
        return datasets.load_dataset(kind, data_files=there, split="train", cache_dir=cache, **options)

    made = datasets.Dataset.from_dict(ROWS, features=features)
    made.save_to_disk(tmp_path / "saved")
    assert pairs(tmp_path / "saved") == PAIRS
    datasets.DatasetDict({"train": made, "test": made}).save_to_disk(tmp_path / "splits")
    with pytest.raises(UsageError, match="several splits"):
        pairs(tmp_path / "splits")
    assert pairs(tmp_path / "splits/train") == PAIRS
    bitextmine(
        *["score", "saved", "--scol", "en", "--tcol", "de", "--columns", "numbers", "-o", "out.jsonl"],
        cwd=tmp_path,
    )
    wanted = datasets.Features({**features, "numbers": datasets.Value("float64")})
    again = load("json", "out.jsonl", features=wanted)
    assert [(row["translation"]["en"], row["translation"]["de"]) for row in again] == PAIRS
    assert again["id"][:] == ["a", "b", "c"] and again["numbers"][0] == 1.0
    # The structs of the input, and of JSON Lines, are those of Parquet.
    bitextmine("filter", "out.jsonl", "--preset", "none", "-o", "kept.parquet", cwd=tmp_path)
    kept = load("parquet", "kept.parquet").cast_column("translation", features["translation"])
    assert [(row["translation"]["en"], row["translation"]["de"]) for row in kept] == PAIRS
    assert kept["id"][:] == ["a", "b", "c"] and kept["numbers"][0] == 1.0
    bitextmine("filter", "out.jsonl", "--min", "numbers=2", "-o", "none.parquet", cwd=tmp_path)
    schema = pytest.importorskip("pyarrow.parquet").read_schema
    assert schema(tmp_path / "none.parquet").equals(schema(tmp_path / "kept.parquet"))
    assert pairs(tmp_path / "kept.parquet") == PAIRS
