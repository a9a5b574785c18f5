"""Semantic textual similarity: files as they are found, one table of several languages, directions across them."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from bitextmine.encoder import load_encoder
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.gold_pairs import read_gold_pairs
from bitextmine.evaluation.sts import evaluate_sts

EN = [
    ("A man is playing a guitar.", "A man plays the guitar.", 4.8),
    ("A woman is slicing an onion, slowly.", "Someone cuts a tomato.", 2.0),
    ('He said "no" to them.', "He refused.", 3.5),
    ("The dog runs in the park.", "Parliament votes tomorrow.", 0.0),
    ("Two boys swim.", "Two boys are swimming.", 4.8),
    ("The train is late.", "The bus is late.", 2.4),
]
DE = [
    ("Ein Mann spielt Gitarre.", "Ein Mann spielt die Gitarre.", 4.8),
    ("Eine Frau schneidet langsam eine Zwiebel.", "Jemand schneidet eine Tomate.", 2.0),
    ("Er sagte nein zu ihnen.", "Er lehnte ab.", 3.5),
    ("Der Hund läuft im Park.", "Das Parlament stimmt morgen ab.", 0.0),
    ("Zwei Jungen schwimmen.", "Zwei Jungen schwimmen gerade.", 4.8),
    ("Der Zug hat Verspätung.", "Der Bus hat Verspätung.", 2.4),
]


def quoted(text):
    return '"' + text.replace('"', '""') + '"' if {",", '"'} & set(text) else text


def csv_text(rows):
    return "".join(f"{quoted(a)},{quoted(b)},{score}\n" for a, b, score in rows)


def benchmark_text(rows):
    """As the STS benchmark is published: tab-separated, quotes as they are, some rows with two more columns."""
    return "".join(
        f"main-news\tMSRvid\t2012\t{i:04d}\t{score:.3f}\t{a}\t{b}{chr(9) + 'source' if i % 2 else ''}\n"
        for i, (a, b, score) in enumerate(rows)
    )


@pytest.fixture
def files(tmp_path):
    """Write pairs by language; the paths of the files."""

    def write(**sets):
        for lang, rows in sets.items():
            (tmp_path / f"x.{lang}.csv").write_text(csv_text(rows), encoding="utf-8")
        return [tmp_path / f"x.{lang}.csv" for lang in sets]

    return write


FORMS = {
    "csv": csv_text,
    "tsv": lambda rows: "".join(f"{a}\t{b}\t{score}\n" for a, b, score in rows),
    "tsv, score first": lambda rows: "".join(f"{score}\t{a}\t{b}\n" for a, b, score in rows),
    "STS benchmark": benchmark_text,
    "GLUE": lambda rows: (
        "index\tgenre\tsentence1\tsentence2\tscore\n"
        + "".join(f"{i}\tx\t{a}\t{b}\t{score}\n" for i, (a, b, score) in enumerate(rows))
    ),
    "Windows": lambda rows: "\ufeff" + csv_text(rows).replace("\n", "\r\n"),
    "blank lines": lambda rows: "\n" + csv_text(rows).replace("\n", "\n\n"),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_holds_the_same_pairs(form, tmp_path):
    path = tmp_path / "stsb.en.dev.csv"  # the published one is tab-separated under such a name
    path.write_text(FORMS[form](EN), encoding="utf-8")
    found = read_gold_pairs(path)
    assert list(zip(found.first, found.second, found.gold.tolist(), strict=True)) == EN


@pytest.mark.parametrize(
    ("file", "name", "language"),
    [
        ("stsb.de.dev.csv", "stsb.dev", "de"),
        ("stsb-de-dev.csv", "stsb-dev", "de"),
        ("stsb_de.tsv.gz", "stsb", "de"),
        ("sts17.en-de.tsv", "sts17", "en-de"),
        ("STS2017-en-ar.txt", "STS2017", "en-ar"),
        ("sts-dev.csv", "sts-dev", ""),
    ],
)
def test_a_files_name_tells_set_and_language(file, name, language, tmp_path):
    import gzip

    data = csv_text(EN).encode()
    (tmp_path / file).write_bytes(gzip.compress(data) if file.endswith("gz") else data)
    found = read_gold_pairs(tmp_path / file)
    assert (found.name, found.language) == (name, language)


def test_the_number_is_that_of_plain_code(files):
    encoder = load_encoder()
    a, b, gold = (list(column) for column in zip(*EN, strict=True))
    cosines = (encoder.encode(a) * encoder.encode(b)).sum(1)
    found = evaluate_sts(files(en=EN), model=encoder)
    (result,) = found.results
    assert result.spearman == pytest.approx(float(spearmanr(cosines, gold).statistic), abs=1e-12)
    assert result.low <= result.spearman <= result.high
    assert f"resamples:2000|seed:1|model:{encoder.hash}" in found.signature


def test_equal_sentences_are_tied(files):
    """Their cosines are 1 to the last bit, whatever their vectors are."""
    encoder = load_encoder()
    lines = [f"Sentence number {i} of the report about fish number {i * i}." for i in range(40)]
    rows = [(line, line, float(i % 2)) for i, line in enumerate(lines)]
    rows += [("A dog barks.", "It rains in Rome.", 0.5)]
    found = evaluate_sts(files(en=rows), model=encoder).results[0].spearman
    want = spearmanr([1.0] * 40 + [0.0], [row[2] for row in rows]).statistic
    assert found == pytest.approx(float(want), abs=1e-12)


def test_across_languages_takes_one_side_of_each(files):
    encoder, paths = load_encoder(), files(en=EN, de=DE)
    found = evaluate_sts(paths, pairs="en-de,de-en", model=encoder)
    assert [r.languages for r in found.results] == ["en", "de", "en-de", "de-en"]
    for result, (first, second) in zip(found.results, [(EN, EN), (DE, DE), (EN, DE), (DE, EN)], strict=True):
        cosines = (encoder.encode([r[0] for r in first]) * encoder.encode([r[1] for r in second])).sum(1)
        assert result.spearman == pytest.approx(
            float(spearmanr(cosines, [r[2] for r in EN]).statistic), abs=1e-12
        )
    within, across = found.means
    assert (within.languages, across.languages) == ("within", "across")
    assert within.spearman == pytest.approx(np.mean([r.spearman for r in found.results[:2]]))
    assert across.spearman == pytest.approx(np.mean([r.spearman for r in found.results[2:]]))
    both = evaluate_sts(paths, pairs="all", model=encoder)
    assert both.results == found.results
    frame = both.to_frame()
    assert list(frame.columns) == ["name", "languages", "spearman", "low", "high", "pairs"]


def test_an_encoder_that_tells_nothing_apart_counts_as_0(files):
    class Same:
        hash, max_pieces = "0", 9

        def tokenize(self, lines):
            return lines, 0, None

        def encode_pieces(self, pieces, batch_tokens=None):
            return np.zeros((len(pieces), 2), dtype=np.float32)

    found = evaluate_sts(files(en=EN), model=Same())
    assert (found.results[0].spearman, found.results[0].low, found.results[0].high) == (0, 0, 0)
    assert found.notes == ("x en: all cosines are equal: there is no correlation, counted as 0",)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,1\nc,d,high\ne,f,2\n", "line 2: the gold score 'high' is not a finite number"),
        ("a,b,1\nc,d\n", "line 2: 2 cells, not 3"),
        ("x\tx\tx\tx\t1\ta\tb\nx\tx\tx\tx\t1\ta\n", "line 2: 6 cells, not 7 or more"),
        ("a,b,1\nc, ,2\n", "line 2: a sentence is blank"),
        ('a,b,1\n"c"d,e,2\n', "line 2: not a row of comma-separated cells"),
        ("a,b,1\nc,d,2\n", "2 sentence pairs; a correlation needs 3"),
    ],
)
def test_files_that_are_wrong_are_named_with_the_line(text, message, tmp_path):
    path = tmp_path / "sts.en.csv"
    path.write_text(text)
    with pytest.raises(BitextmineError) as raised:
        read_gold_pairs(path)
    assert str(raised.value).startswith(str(path))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("german", "message"),
    [
        (DE[:-1], "en.csv has 6 pairs, .*de.csv has 5"),
        (DE[::-1], "the gold score is 2.4, but 4.8 in .*line 1"),
    ],
)
def test_files_that_are_not_one_set(files, german, message):
    with pytest.raises(BitextmineError, match=message):
        evaluate_sts(files(en=EN, de=german), pairs="all")
    with pytest.raises(UsageError, match="expected the names of files"):
        evaluate_sts({"en": EN})


def test_the_command(bitextmine, tmp_path):
    for lang, rows in (("en", EN), ("de", DE)):
        (tmp_path / f"stsb.{lang}.dev.csv").write_text(csv_text(rows), encoding="utf-8")
    files = ["stsb.en.dev.csv", "stsb.de.dev.csv"]
    run = lambda *args: bitextmine("evaluate", "sts", *args, "--model", "europe5", cwd=tmp_path)  # noqa: E731
    table = run(*files, "--pairs", "en-de").out.splitlines()
    assert table[0].split() == ["set", "languages", "Spearman", "low", "high", "pairs"]
    assert [line.split()[0] for line in table[1:5]] == ["stsb.dev"] * 3 + ["mean"]
    assert table[-1].startswith("task:sts|")
    told = json.loads(run(*files, "--format", "json").out)
    assert told["kind"] == "sts evaluation"
    assert f"{100 * told['results'][1]['spearman']:.2f}" == table[2].split()[2]
    piped = ("evaluate", "sts", "-", "--model", "europe5", "--format", "json")
    there = json.loads(bitextmine(*piped, stdin=(tmp_path / files[1]).read_bytes()).out)["results"][0]
    assert there["spearman"] == told["results"][1]["spearman"]


def test_a_language_without_english(files):
    encoder = load_encoder()
    found = evaluate_sts(files(de=DE), model=encoder)
    (result,) = found.results
    a, b, gold = (list(column) for column in zip(*DE, strict=True))
    cosines = (encoder.encode(a) * encoder.encode(b)).sum(1)
    assert (result.languages, found.means) == ("de", ())
    assert result.spearman == pytest.approx(float(spearmanr(cosines, gold).statistic), abs=1e-12)
