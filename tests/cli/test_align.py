"""`bitextmine align` and `evaluate align`."""

import gzip
import json
import signal
import textwrap
from importlib.util import find_spec

import pytest

from bitextmine.files.journal import Journal, read_head

from .helpers import NO_MODEL, Here, table


@pytest.fixture
def bm(bitextmine, tmp_path):
    """The command in the test's folder, with the default encoder."""
    return Here(bitextmine, tmp_path, {})


@pytest.fixture
def document(sentence_pairs, tmp_path):
    """Write doc.en and doc.fr; return the gold alignment in Vecalign's format.

    Every seventh sentence has no translation, and one in nine is joined with the one before in English.
    """

    def write(folder, name="doc", start=2000, count=60):
        folder.mkdir(exist_ok=True)
        en, fr, gold = [], [], []
        for i, (e, f) in enumerate(sentence_pairs[start : start + count]):
            if i % 9 == 4 and gold and gold[-1][0] and gold[-1][1]:
                en[-1] += " " + e
                fr.append(f)
                gold[-1][1].append(len(fr) - 1)
                continue
            sides = [[len(en)], [len(fr)]]
            if i % 7 == 3:
                sides[i % 2] = []
            en += [e] if sides[0] else []
            fr += [f] if sides[1] else []
            gold.append(sides)
        for lang, lines in (("en", en), ("fr", fr)):
            (folder / f"{name}.{lang}").write_text("".join(f"{line}\n" for line in lines))
        return "".join(f"{src}:{tgt}\n" for src, tgt in gold)

    return write


def links(out):
    rows = [line.split("\t") for line in out.splitlines()]
    return [tuple([int(i) for i in cell.split(",") if i] for cell in row[1:3]) for row in rows]


def test_two_documents_and_their_score(bm, document, tmp_path):
    (tmp_path / "gold").write_text(document(tmp_path))
    result = bm("align", "doc.en", "doc.fr", "--ids", "-o", "out.tsv")
    assert "1 pair of documents" in result.err and "warning" not in result.err
    rows = [line.split("\t") for line in (tmp_path / "out.tsv").read_text().splitlines()]
    src, tgt = ((tmp_path / f"doc.{lang}").read_text().splitlines() for lang in ("en", "fr"))
    found = links((tmp_path / "out.tsv").read_text())
    assert [i for x, _ in found for i in x] == list(range(1, len(src) + 1))
    assert [j for _, y in found for j in y] == list(range(1, len(tgt) + 1))
    for row, (x, y) in zip(rows, found, strict=True):
        assert row[3] == " ".join(src[i - 1] for i in x)
        assert row[4] == " ".join(tgt[j - 1] for j in y)
        assert bool(x and y) or float(row[0]) == -10
    report = json.loads(bm("evaluate", "align", "out.tsv", "--gold", "gold", "--format", "json").out)
    assert report["strict"]["f1"] > 0.7 and report["lax"]["f1"] > 0.85
    assert sorted(p.name for p in tmp_path.iterdir()) == ["doc.en", "doc.fr", "gold", "out.tsv"]


def test_formats_of_all_links(bm, document, tmp_path):
    (tmp_path / "gold").write_text(document(tmp_path))
    for lang, quoted in (("en", '"quoted"'), ("fr", "« cité »")):
        with (tmp_path / f"doc.{lang}").open("a") as file:
            file.write(f"Tom & Jerry <b>\x0b\x01 {quoted}\n")
    forms = ("tsv", "vecalign")
    out = {form: bm("align", "doc.en", "doc.fr", "--format", form).out for form in forms}
    assert all(line.count("\t") == 2 for line in out["tsv"].splitlines())
    assert "\tTom & Jerry <b>" in out["tsv"]
    (tmp_path / "found").write_text(out["vecalign"])
    report = bm("evaluate", "align", "found", "--gold", "gold", "--format", "json").out
    assert json.loads(report)["lax"]["f1"] > 0.85


def test_score_and_filter_read_the_output(bm, document, tmp_path):
    document(tmp_path)
    out = bm("align", "doc.en", "doc.fr").out
    scored = bm("score", "--scol", "2", "--tcol", "3", stdin=out.encode()).out
    rows = [line.split("\t")[:3] for line in scored.splitlines()]
    assert rows == [["score", "src", "tgt"], *(line.split("\t") for line in out.splitlines())]
    kept = bm("filter", stdin=scored.encode()).out.splitlines()[1:]
    paired = {line for line in out.splitlines() if all(line.split("\t"))}
    assert len(paired) * 0.8 < len(kept) <= len(paired)
    assert {"\t".join(line.split("\t")[:3]) for line in kept} <= paired
    if find_spec("pyarrow"):
        bm("align", "doc.en", "doc.fr", "-o", "out.parquet")
        kept = bm("filter", "out.parquet", "--preset", "none").out.splitlines()
        assert kept[0].split("\t") == ["src", "tgt", "score"]
        assert {tuple(line.split("\t")[:2]) for line in kept[1:]} == {
            tuple(line.split("\t")[1:]) for line in paired
        }


def test_folders_are_as_their_files(bm, document, tmp_path):
    for side in ("en", "fr"):
        (tmp_path / side).mkdir()
    expected = ""
    for i, name in enumerate(("a", "b", "c")):
        document(tmp_path, name, 2000 + 100 * i, 30)
        single = bm("align", f"{name}.en", f"{name}.fr", "--ids").out.splitlines()
        expected += "".join(line.replace("\t", f"\t{name}\t", 1) + "\n" for line in single)
        for side in ("en", "fr"):
            (tmp_path / f"{name}.{side}").rename(tmp_path / side / f"{name}.txt")
    with gzip.open(tmp_path / "en" / "a.txt.gz", "wb") as file:
        file.write((tmp_path / "en" / "a.txt").read_bytes())
    (tmp_path / "en" / "a.txt").unlink()
    assert bm("align", "en", "fr", "--ids", "--jobs", "1", "--model", "europe5").out == expected


def test_matching_documents(bm, document, sentence_pairs, tmp_path):
    for i in range(12):
        document(tmp_path, f"d{i}", 2000 + 50 * i, 25)
    for side in ("en", "fr"):
        (tmp_path / side).mkdir()
    for i in range(12):
        (tmp_path / f"d{i}.en").rename(tmp_path / "en" / f"{i:02}.txt")
        (tmp_path / f"d{i}.fr").rename(tmp_path / "fr" / f"{(5 * i + 3) % 12:02}.text")
    (tmp_path / "fr" / "03.text").unlink()  # of 00
    result = bm("align", "en", "fr", "--documents", "--ids")
    found = list(dict.fromkeys(line.split("\t")[1] for line in result.out.splitlines()))
    assert found == [f"{i:02}.txt {(5 * i + 3) % 12:02}.text" for i in range(1, 12)]
    assert "1 document without a partner: 00.txt" in result.err


def test_a_killed_run_resumes(bm, document, tmp_path):
    for i in range(70):
        document(tmp_path / "docs", f"d{i:02}", 1600 + 20 * i, 8)
        for lang in ("en", "fr"):
            (tmp_path / "docs" / lang).mkdir(exist_ok=True)
            (tmp_path / "docs" / f"d{i:02}.{lang}").rename(tmp_path / "docs" / lang / f"d{i:02}.{lang}")
    args = ("align", "docs/en", "docs/fr", "--ids", "--jobs", "1")
    expected = bm(*args[:-1], "3").out
    # A file is opened for its format and for its text; 32 documents are a batch: the third is being read.
    killed = bm.dies(tmp_path / "hooks", 2 * 64 + 3, *args, "-o", "out.tsv", folder=tmp_path / "docs" / "en")
    assert killed.code == -signal.SIGKILL and not (tmp_path / "out.tsv").exists()
    journal = tmp_path / ".out.tsv.align"
    head = read_head(journal)
    with Journal(journal, head.job, head.identity) as records:
        assert len(records) == 64
        records.truncate(63)
        record = records[0]
        record["links"][0][2] = 0.1234  # what is done is not done again
        records.truncate(0)
        records.append(record)
    journal.write_bytes(journal.read_bytes() + b'{"torn')
    (tmp_path / "docs" / "fr" / "d40.fr").write_text("Autre chose.\n")
    assert "70 pairs of documents" in bm(*args, "-o", "out.tsv").err
    fresh = bm(*args).out
    resumed = (tmp_path / "out.tsv").read_text()
    assert resumed.startswith("0.1234\t") and resumed.partition("\t")[2] == fresh.partition("\t")[2]
    assert fresh != expected and not journal.exists()


def test_small_documents(bm, tmp_path):
    for name, en, fr in (
        ("one", "Good morning.\n", "Bonjour.\n"),
        ("blank", "\n \nGood morning.\n\n", "\n\nBonjour.\n"),
        ("many", "Good morning. Thank you. See you tomorrow.\n", "Bonjour.\nMerci.\nÀ demain.\n"),
        ("signs", "...\n?\n", "!\n"),
    ):
        (tmp_path / f"{name}.en").write_text(en)
        (tmp_path / f"{name}.fr").write_text(fr)
    expected = {"one": [([1], [1])], "blank": [([3], [3])], "many": [([1], [1]), ([2], [2]), ([3], [3])]}
    for name, found in expected.items():
        assert links(bm("align", f"{name}.en", f"{name}.fr", "--ids").out) == found, name
    lines = bm("align", "many.en", "many.fr", "--ids", "--presplit").out
    assert links(lines) == [([1], [1, 2, 3])]
    signs = links(bm("align", "signs.en", "signs.fr", "--ids").out)
    assert sorted(i for x, _ in signs for i in x) == [1, 2]


def test_hopeless_documents_are_named(bm, document, tmp_path):
    for lang in ("en", "fr"):
        (tmp_path / lang).mkdir()
    document(tmp_path, "good", 2000, 20)
    document(tmp_path, "odd", 3000, 20)
    good = (tmp_path / "good.fr").read_text()
    (tmp_path / "odd.fr").write_text(good)
    for name, en, fr in (("half", "\n \n", "Bonjour.\n"), ("long", "Good morning.\n", good)):
        (tmp_path / f"{name}.en").write_text(en)
        (tmp_path / f"{name}.fr").write_text(fr)
    assert "half.en: empty" in bm.fails("align", "half.en", "half.fr")
    assert "<stdin>: empty" in bm.fails("align", "half.fr", "-", stdin=b"")
    for path in list(tmp_path.glob("*.*")):
        path.rename(tmp_path / path.suffix[1:] / path.name)
    err = bm("align", "en", "fr").err
    assert "warning: 1 pair of documents with an empty side: half (source)\n" in err
    assert "the documents of 2 pairs do not look like translations of each other: long (mean" in err
    assert "the target has 18 times the sentences of the source), odd (mean" in err


def test_missing_files(bm, document, tmp_path):
    document(tmp_path, "a")
    assert "b.fr: no such file" in bm.fails("align", "a.en", "b.fr")
    for name in ("en/a.txt", "en/b.txt", "fr/a.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("One.\n")
    error = bm.fails("align", "en", "fr")
    assert "en/b.txt: no document of that name" in error and "--documents" in error
    (tmp_path / "fr" / "b.txt").write_text("Un.\n")
    (tmp_path / ".out.tsv.align").write_text("notes\n")
    assert "move it away" in bm.fails("align", "en", "fr", "-o", "out.tsv")
    assert (tmp_path / ".out.tsv.align").read_text() == "notes\n"
    (tmp_path / "en" / "a.en").write_text("One.\n")
    assert "both called 'a'" in bm.fails("align", "en", "fr")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (("a.en", "a.fr", "--documents"), "--documents takes two folders"),
        (("a.en", "a.fr", "--ids", "--format", "vecalign"), "--ids"),
        (("-", "-"), "standard input"),
        (("a.en", "."), "is a folder"),
        (("a.en", "a.fr", "--max-size", "1"), "--max-size"),
    ],
)
def test_wrong_usage(bm, tmp_path, args, word):
    for lang in ("en", "fr"):
        (tmp_path / f"a.{lang}").write_text("One.\n")
    result = bm("align", *args, code=2)
    assert word in result.err and "Traceback" not in result.err


def test_languages_are_checked(bm, tmp_path):
    for lang in ("English", "fr"):
        (tmp_path / f"doc.{lang}").write_text("One.\n")
    refused = bm("align", "doc.fr", "doc.fr", "--src-lang", "English", code=2).err
    assert "'English' is not a language code such as en" in refused
    error = bm("align", "doc.English", "doc.fr", "-o", "out.tmx", code=2).err
    assert "TMX needs two languages" in error and "--src-lang" in error
    stated = ("--format", "tmx", "--src-lang", "en", "--tgt-lang", "pt-BR")
    assert 'xml:lang="pt-BR"' in bm("align", "doc.English", "doc.fr", *stated).out
    assert "no/out.tsv" in bm.fails("align", "doc.English", "doc.fr", "-o", "no/out.tsv")


PAGE = """<!DOCTYPE html>
<html><head><title>Museum</title></head><body><nav><a href="/">Home</a> <a href="/x">Contact</a></nav>
<main><h1>{}</h1><p>{}</p><p>{}</p></main></body></html>
"""
TEXTS = {
    "en": (
        "The museum",
        "The museum opens at nine in the morning. Tickets cost twelve euros. Children pay nothing at all.",
        "Last year, more than 3,400 visitors came to see the old clocks. Most of them came in summer.",
    ),
    "fr": (
        "Le musée",
        "Le musée ouvre à neuf heures du matin. Les billets coûtent douze euros. Les enfants ne paient rien du tout.",
        "L'an dernier, plus de 3 400 visiteurs sont venus voir les vieilles horloges. La plupart sont venus en été.",
    ),
}


@pytest.mark.parametrize("form", ["paragraphs", "wrapped", "stdin", "page"])
def test_documents_are_cut_into_sentences(bm, tmp_path, form):
    if form == "page":
        pytest.importorskip("resiliparse")
    for lang, texts in TEXTS.items():
        text = "\n\n".join(textwrap.fill(part, 40) if form == "wrapped" else part for part in texts[1:])
        (tmp_path / f"doc.{lang}").write_text(PAGE.format(*texts) if form == "page" else f"{text}\n")
    args = ("align", "doc.en", "doc.fr", "--ids")
    result = bm(*args)
    if form == "stdin":
        stdin = (tmp_path / "doc.en").read_bytes()
        assert bm("align", "-", *args[2:], "--src-lang", "en", stdin=stdin).out == result.out
    rows = [line.split("\t")[3:] for line in result.out.splitlines()]
    assert ["Tickets cost twelve euros.", "Les billets coûtent douze euros."] in rows
    assert len(rows) == 5 + (form == "page")
    assert [x for x, _ in links(result.out)] == [[i + 1] for i in range(len(rows))]
    assert "2 documents were not one sentence per line and were split (doc.en, doc.fr)" in result.err
    assert "were split" not in bm(*args, "--presplit").err


def test_scores_are_probable_where_links_are_right(bm, document, tmp_path):
    """Log odds, as those of mine: most right links above 0, and those between unrelated documents below."""
    document(tmp_path, "a", 2000, 60)
    document(tmp_path, "b", 3000, 60)
    for names, sign in ((("a.en", "a.fr"), 1), (("a.en", "b.fr"), -1)):
        result = bm("align", *names)
        rows = [line.split("\t") for line in result.out.splitlines()]
        scores = [float(row[0]) for row in rows if row[1] and row[2]]
        assert sum(score * sign > 0 for score in scores) > 0.9 * len(scores)
        assert ("do not look like translations of each other: a (mean" in result.err) == (sign < 0)


def test_lines_without_words_leave_the_link_that_they_interrupt(bm, sentence_pairs, tmp_path):
    en, fr = (list(side) for side in zip(*sentence_pairs[3000:3020], strict=True))
    first, rest = fr[9][: len(fr[9]) // 2].rsplit(" ", 1)
    fr[9:10] = [first, "- 17 -", rest + fr[9][len(fr[9]) // 2 :]]
    fr.append(". . .")
    (tmp_path / "doc.en").write_text("".join(f"{line}\n" for line in en))
    (tmp_path / "doc.fr").write_text("".join(f"{line}\n" for line in fr))
    found = links(bm("align", "doc.en", "doc.fr", "--ids", "--presplit").out)
    assert ([10], [10, 12]) in found and ([], [11]) in found and ([], [23]) in found
    assert sorted(j for _, y in found for j in y) == list(range(1, 24))


def test_origins_stand_beside_the_links(bm, document, tmp_path):
    document(tmp_path)
    for lang in ("en", "fr"):
        count = len((tmp_path / f"doc.{lang}").read_text().splitlines())
        rows = (f"book.{lang}\t\t{i // 5 + 1}\t{i % 5 + 1}\n" for i in range(count))
        (tmp_path / f"doc.{lang}.origin.tsv").write_text("".join(rows))
    plain = bm("align", "doc.en", "doc.fr", "--ids").out.splitlines()
    rows = [
        line.split("\t") for line in bm("align", "doc.en", "doc.fr", "--ids", "--origin").out.splitlines()
    ]
    assert ["\t".join(row[:5]) for row in rows] == plain
    for row in rows:
        for lang, lines, origin in (("en", row[1], row[5]), ("fr", row[2], row[6])):
            places = [f"{(int(i) - 1) // 5 + 1}.{(int(i) - 1) % 5 + 1}" for i in lines.split(",") if i]
            first_and_last = f"book.{lang} " + "-".join(dict.fromkeys(places[:1] + places[-1:]))
            assert origin == (first_and_last if places else "")
    (tmp_path / "doc.fr.origin.tsv").write_text("book.fr\t\t1\t1\n")
    assert "doc.fr.origin.tsv: 1 lines" in bm.fails("align", "doc.en", "doc.fr", "--origin")
    assert (
        "--format vecalign" in bm("align", "doc.en", "doc.fr", "--origin", "--format", "vecalign", code=2).err
    )


def test_origins_of_what_is_cut_here(bm, tmp_path):
    for side, texts in TEXTS.items():
        (tmp_path / side).mkdir()
        (tmp_path / side / "a.txt").write_text("\n\n".join(texts[1:]) + "\n")
        (tmp_path / side / "a.txt.origin.tsv").write_text("no document\n")
    rows = [line.split("\t") for line in bm("align", "en", "fr", "--origin").out.splitlines()]
    assert [row[3] for row in rows] == [f"a.txt {i}.{j}" for i, j in ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2))]


def test_normalized_texts(bm, tmp_path):
    (tmp_path / "a.en").write_text("<p>Tom &amp; Jerry  came\x0b late.</p>\nGood morning.\n")
    (tmp_path / "a.fr").write_text("<b>Tom &amp; Jerry</b> sont arrivés en retard.\nBonjour.\n")
    args = ("align", "a.en", "a.fr", "--presplit")
    assert "<p>Tom &amp; Jerry" in bm(*args).out
    for form in ("tsv", "jsonl"):
        out = bm(*args, "--normalize", "--format", form).out
        assert "Tom & Jerry came late." in out and "<b>" not in out


def test_the_format_by_the_file_name(bm, tmp_path):
    for lang in ("en", "fr"):
        (tmp_path / f"doc.{lang}").write_text("One two.\nThree.\n")
    begins = {"jsonl": '{"translation": {"en": "', "tmx": "<?xml", "": ""}
    for suffix, text in begins.items():
        bm("align", "doc.en", "doc.fr", "-o", f"out.{suffix}")
        assert (tmp_path / f"out.{suffix}").read_text().startswith(text)
        if suffix in ("jsonl", "tmx"):
            bm("score", f"out.{suffix}", "--columns", "copy", "-o", "scored.tsv")
            assert [row["copy"] for row in table(tmp_path / "scored.tsv")] == ["1.0000", "1.0000"]
    for wrong in (("--format", "tsv", "-o", "x.tmx"), ("-o", "x.docx")):
        assert "-o x." in bm.refused("align", "doc.en", "doc.fr", *wrong, *NO_MODEL, code=2)


def test_subtitles(bm, tmp_path):
    (tmp_path / "film.en.srt").write_bytes(
        b"\xef\xbb\xbf1\r\n00:00:01,000 --> 00:00:03,500\r\nWhere were you yesterday\r\nevening, my friend?\r\n\r\n"
        b"2\r\n00:00:04,000 --> 00:00:06,000\r\n- I stayed at home.\r\n- That is not true!\r\n\r\n"
        b"3\r\n00:00:07,000 --> 00:00:09,000\r\n<i>The door opens slowly.</i>\r\n"
    )
    german = (
        "WEBVTT\n\n00:01.100 --> 00:03.700\nWo warst du gestern Abend,\nmein Freund?\n\n"
        "00:04.100 --> 00:05.000\n- Ich bin zu Hause geblieben.\n\n00:05.000 --> 00:06.200\n- Das ist nicht wahr!\n\n"
        "00:07.000 --> 00:09.000\n<i>Die Tür öffnet sich langsam.</i>\n"
    )
    out = bm("align", "film.en.srt", "-", "--tgt-lang", "de", "--ids", stdin=german.encode()).out
    assert links(out) == [([n], [n]) for n in range(1, 5)]
    assert [line.split("\t")[3:] for line in out.splitlines()] == [
        ["Where were you yesterday evening, my friend?", "Wo warst du gestern Abend, mein Freund?"],
        ["I stayed at home.", "Ich bin zu Hause geblieben."],
        ["That is not true!", "Das ist nicht wahr!"],
        ["The door opens slowly.", "Die Tür öffnet sich langsam."],
    ]
    assert bm("split", "film.en.srt").out == "".join(line.split("\t")[3] + "\n" for line in out.splitlines())


@pytest.mark.parametrize(
    "pairs",
    [
        [("The same line again.", "Encore la même ligne.")],
        [("One line.", "Une ligne."), ("Another sentence.", "Une autre phrase.")],
    ],
)
@pytest.mark.parametrize("times", [3, 250])
def test_repeated_lines_are_aligned_one_to_one(bm, tmp_path, pairs, times):
    for name, lines in zip(("same.en", "same.fr"), zip(*pairs, strict=True), strict=True):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines) * times)
    expected = [([n], [n]) for n in range(1, len(pairs) * times + 1)]
    assert links(bm("align", "same.en", "same.fr", "--ids").out) == expected
