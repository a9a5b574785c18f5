"""Wrong usage: a value that no option takes, options that do not go together. Exit code 2, and the option is named."""

from __future__ import annotations

import gzip

import pytest

# a command, its option, values that it must refuse
WRONG = [
    ("train --pairs x.en-fr.tsv --out m", "--vocabulary", ["many", "0"]),
    ("train --pairs x.en-fr.tsv --out m", "--dim", ["0", "2.5"]),
    ("train --pairs x.en-fr.tsv --out m", "--layers", ["-1", "two"]),
    ("train --pairs x.en-fr.tsv --out m", "--epochs", ["0", "nan", "inf", "x"]),
    ("train --pairs x.en-fr.tsv --out m", "--batch", ["0", "1", "x"]),
    ("train --pairs x.en-fr.tsv --out m", "--seed", ["-1", "x"]),
    (
        "train --pairs x.en-fr.tsv --out m",
        "--set",
        ["train.batch", "train.batch=many", "train.nosuch=1", "x=1"],
    ),
    ("train --pairs x.en-fr.tsv --out m", "--device", ["tpu"]),
    ("embed corpus.fr", "--model", [""]),
    ("embed corpus.fr", "--lang", ["", "f", "../fr", "fr "]),
    ("embed corpus.fr", "--out", ["", "vectors", ".npy"]),
    ("embed corpus.fr", "--device", ["foo", "cuda:", "cuda:x", "cuda:-1", ""]),
    ("embed corpus.fr", "--batch-tokens", ["0", "x"]),
    ("embed corpus.fr", "--errors", ["ignore"]),
    ("index corpus.fr", "--type", ["nonsense", "", "IVF 1024"]),
    ("index corpus.fr", "--recall-sample", ["0"]),
    ("index corpus.fr", "--recall-target", ["1.1", "nan"]),
    ("index corpus.fr", "-k", ["0"]),
    ("index corpus.fr", "--seed", ["-1", "4294967296"]),
    ("mine --src en --tgt fr", "-k", ["0", "x"]),
    ("mine --src en", "--tgt", ["", "f", "corpus/fr"]),
    ("mine --src en --tgt fr", "--margin", ["x"]),
    ("mine --src en --tgt fr", "--retrieval", ["x"]),
    ("mine --src en --tgt fr", "--threshold", ["abc", "nan", "inf", "", "1,2"]),
    ("mine --src en --tgt fr", "--fpr", ["0", "1", "nan", "x"]),
    ("mine --src en --tgt fr", "--dedup", ["x"]),
    ("mine --src en --tgt fr", "--duplicates", ["x"]),
    ("mine --src en --tgt fr", "--search", ["x"]),
    ("evaluate retrieval --queries q.tsv", "--pairs", ["en", "en-", "en-fr;fr-en", ""]),
    ("evaluate retrieval --queries q.tsv", "--pivot", ["e"]),
    ("evaluate retrieval --queries q.tsv", "-k", ["0"]),
    ("evaluate retrieval --queries q.tsv", "--csls", ["0", "x"]),
    ("evaluate retrieval --queries q.tsv", "--candidates", ["0"]),
    ("evaluate retrieval --queries q.tsv", "--format", ["xml"]),
    ("evaluate mining mined.tsv --gold gold.tsv", "--seed", ["-1"]),
    ("evaluate mining mined.tsv --gold gold.tsv", "--resamples", ["0"]),
    ("report pairs.tsv -o x.html", "--threshold", ["abc"]),
    ("score pairs.tsv", "--columns", ["nosuch", "cosine,cosine", "cosine,"]),
    ("score pairs.tsv", "--window", ["0", "x"]),
    ("score pairs.tsv", "--margin", ["x"]),
    ("score pairs.tsv", "--src", ["e"]),
    ("filter scored.tsv", "--min", ["cosine", "cosine=x", "cosine=nan", "cosine=true", "=1"]),
    ("filter scored.tsv", "--max", ["cosine="]),
    ("filter scored.tsv", "--equal", ["lang"]),
    ("filter scored.tsv", "--preset", ["nosuch"]),
    ("filter scored.tsv", "--duplicates", ["all"]),
    ("filter scored.tsv", "--memory", ["0", "2048", "much"]),
    ("filter scored.tsv", "--explain", ["-1"]),
]

# commands whose options do not go together, and what the message must name
TOGETHER = [
    ("train --out m", ["--pairs"]),
    ("embed corpus.fr corpus.en --out x.npy", ["--out"]),
    ("embed - --lang fr", ["--out"]),
    ("embed corpus.fr --vectors made.npy --model europe5", ["--vectors", "--model"]),
    (
        "train --pairs x.en-fr.tsv --from europe5 --out m --vocabulary 100",
        ["--vocabulary", "--from", "vocabulary.grow"],
    ),
    ("embed - --out x.npy", ["--lang"]),
    ("mine --src en", ["--tgt"]),
    ("mine --src en --tgt fr --gold gold.tsv --threshold 1", ["--gold", "--threshold"]),
    ("mine --src en --tgt fr --retrieval matching -k 1", ["--retrieval", "-k"]),
    ("mine --src-file - --tgt-file corpus.fr --src en", ["--src-file"]),
    ("evaluate retrieval", ["--queries", "--src-file"]),
    ("evaluate retrieval --src-file corpus.en", ["--tgt-file"]),
    ("evaluate retrieval --tgt-file corpus.en", ["--src-file"]),
    (
        "evaluate retrieval --queries q.tsv --src-file corpus.en --tgt-file corpus.fr",
        ["--queries", "--src-file"],
    ),
    ("evaluate mining mined.tsv --gold gold.tsv --src-file corpus.en", ["--tgt-file"]),
    ("report pairs.tsv", ["-o", "--png"]),
    ("score pairs.tsv --src-index a", ["--tgt-index"]),
    ("score pairs.tsv --columns lang", ["--src", "--tgt"]),
    ("score pairs.tsv --no-header --scol en", ["--no-header"]),
    ("mine --src en --tgt fr -o corpus.fr", ["-o", "corpus.fr"]),
    ("mine --src en --tgt fr -o ./corpus.en.npy", ["-o", "corpus.en.npy"]),
    ("mine --src en --tgt fr --gold gold.tsv -o gold.tsv", ["-o", "gold.tsv"]),
    ("filter pairs.tsv --no-header --tcol fr --max copy=0.5", ["--no-header"]),
]


@pytest.fixture
def refuses(bitextmine, tmp_path):
    """Run a command to exit code 2, in a folder of good files: its message, of one line after the usage."""
    for lang in ("en", "fr"):
        (tmp_path / f"corpus.{lang}").write_text("Bonjour.\n")
    for name in ("pairs.tsv", "scored.tsv", "x.en-fr.tsv"):
        (tmp_path / name).write_text("Good morning.\tBonjour.\n")
    (tmp_path / "q.tsv").write_text("en\tfr\nGood morning.\tBonjour.\n")
    for name in ("gold.tsv", "mined.tsv"):
        (tmp_path / name).write_text("1\t1\n")
    before = sorted(tmp_path.iterdir())

    def run(*args: str) -> str:
        result = bitextmine(*args, code=2, cwd=tmp_path)
        assert result.out == ""
        assert "Traceback" not in result.err
        words = [word for word in args if not word.startswith("-")]
        assert result.err.startswith(f"Usage: bitextmine {words[0]}")
        message = result.err.partition("\nError: ")[2]
        assert message.count("\n") <= 2, message
        assert sorted(tmp_path.iterdir()) == before
        return message

    return run


@pytest.mark.parametrize(
    ("command", "option", "values"), WRONG, ids=lambda x: x if isinstance(x, str) else ""
)
def test_a_value_that_the_option_does_not_take(refuses, command, option, values):
    for value in values:
        message = refuses(*command.split(), option, value)
        assert option in message


@pytest.mark.parametrize(("command", "options"), TOGETHER, ids=lambda x: x if isinstance(x, str) else "")
def test_options_that_do_not_go_together(refuses, command, options):
    message = refuses(*command.split())
    assert all(option in message for option in options), message


def test_an_empty_name_is_none(refuses):
    """As an unset variable in a script gives."""
    for command in (["embed", ""], ["embed", "corpus.fr", ""], ["info", ""], ["score", ""]):
        assert "it is empty" in refuses(*command)
    for command in (["mine", "--src", "en", "--tgt", "fr", "-o", ""], ["report", "pairs.tsv", "-o", ""]):
        assert "'-o'" in refuses(*command)


def test_pairs_never_replace_the_manifest_of_a_corpus(bitextmine, tmp_path):
    """Those of corpus.fr.gz lie in corpus.fr.npy and corpus.fr.json, and pairs in corpus.fr would bring a .json."""
    (tmp_path / "corpus.en").write_text("Good morning.\n")
    (tmp_path / "corpus.fr.gz").write_bytes(gzip.compress(b"Bonjour.\n"))
    result = bitextmine("mine", "--src", "en", "--tgt", "fr", "-o", "corpus.fr", cwd=tmp_path, code=2)
    assert "corpus.fr.json" in result.err
