"""`bitextmine filter`."""

import gzip
import json
import random

import pytest

from .helpers import GOOD, filter_counts, tsv


def test_the_reason_is_the_first_failed_rule(sieve, tmp_path):
    rows = [b"a b\tc d\t0.9\tx", b"a b\tc d e f g h\t0.9\tx", b"a b\tc\t0.1\tx", b"a b\tc d\t\tx"]
    rows += [b"a b\tc d\t0.9\ty", b"a"]
    rules = ("--min", "3=0.5", "--max", "length_ratio=2", "--equal", "4=x")
    kept, err = sieve(b"\n".join(rows), *rules, "--rejected", tmp_path / "bad.gz")
    assert kept == [rows[0]]
    reasons = [b"length_ratio <= 2", b"3 >= 0.5", b"no 3", b"4 = x", b"malformed"]
    bad = gzip.decompress((tmp_path / "bad.gz").read_bytes()).splitlines()
    assert bad == [row + b"\t" + reason for row, reason in zip(rows[1:], reasons, strict=True)]
    counts = filter_counts(err)
    assert {name: counts.pop(name) for name in ("kept", "all")} == {"kept": 1, "all": 6}
    assert counts == {f"rejected: {reason.decode()}": 1 for reason in reasons}
    assert "rules:3>=0.5,length_ratio<=2,4=x|" in err


def test_options_override_rules_from_a_file(sieve, tmp_path):
    (tmp_path / "rules.toml").write_text(
        'duplicates = "exact"\nif_present = ["beauty"]\n[max]\nlength_ratio = 3\n[min]\nbeauty = 1\n3 = 0.5\n'
    )
    rows = [b"aa\tbb\t0.6", b"aa\tbb\t0.6", b"aa\tbbbbbbb\t0.6", b"aa\tbb\t0.4", b"aa\tbbb\t0.9"]
    kept, err = sieve(b"\n".join(rows), "--rules", tmp_path / "rules.toml")
    assert kept == [rows[0], rows[4]]
    assert "rule beauty >= 1 not applied" in err
    kept, _ = sieve(
        b"\n".join(rows), "--rules", tmp_path / "rules.toml", "--min", "3=0.3", "--duplicates", "none"
    )
    assert kept == [rows[0], rows[1], rows[3], rows[4]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[min", "not valid TOML"),
        ("[least]\nx = 1", "'least' is not understood"),
        ("[min]\ncosine = 'high'", "'high'"),
        ("duplicates = 'some'", "exact, near, none"),
        (f"[min]\nx = 1{'0' * 400}", "too many digits"),
    ],
)
def test_bad_rule_files(sieve, tmp_path, text, message):
    (tmp_path / "rules.toml").write_text(text)
    err = sieve(b"a\tb\n", "--rules", tmp_path / "rules.toml", code=1)[1]
    assert message in err and "rules.toml" in err


def test_bad_rules(sieve):
    for option, value, code, message in (
        ("--min", "beauty=1", 1, "'beauty'"),
        ("--min", "cosine=1", 1, "bitextmine score"),
        ("--preset", "mild", 1, "no column quality"),
        ("--min", "7=1", 1, "2 columns"),
        ("--min", "key=1", 1, "holds text"),
        ("--rules", "nowhere.toml", 1, "nowhere.toml"),
        ("--min", "lang=0.5", 2, "--src and --tgt"),
    ):
        assert message in sieve(b"a\tb\n", option, value, code=code)[1]


def test_named_columns(sieve):
    rows = [b"u\ta\tb\t0.9000\t1.5000", b"u\ta\tb\t0.3000\t9.5000"]
    kept, _ = sieve(
        b"\n".join(rows), "--columns", "cosine,margin", "--min", "cosine=0.5", "--max", "margin=2"
    )
    assert kept == rows[:1]
    header = b"url\tsrc\ttgt\tcosine\tmine\n"
    kept, _ = sieve(header + b"\n".join(rows), "--header", "--min", "mine=2")
    assert kept == [header.rstrip(), rows[1]]


def test_language_rules(score, sieve):
    pytest.importorskip("py3langid")
    rows = tsv([*GOOD, (GOOD[0][0], "Der Arzt kauft ein rotes Fahrrad."), (GOOD[1][1], GOOD[1][0])])
    kept, _ = sieve(rows, "--min", "lang=0.5", "--src", "en", "--tgt", "fr")
    assert kept == tsv(GOOD).splitlines()
    assert len(sieve(rows, "--equal", "tgt_lang=de")[0]) == 1
    scored = b"\n".join(score(rows)[0])
    assert "rule lang >= 0.05 not applied" in sieve(scored, "--preset", "mild")[1]
    _, err = sieve(scored, "--preset", "mild", "--src", "en", "--tgt", "fr")
    assert "not applied" not in err and filter_counts(err)["rejected: lang >= 0.05"] == 2


def test_duplicates(sieve):
    rows = [b"Page 1\tSeite 1"] * 2 + [
        b"page 2!\tSEITE 3",
        b"Page 1\tBlatt 1",
        b" Page  1\tSeite 1 ",
        b"Page\tSeite",
    ]
    assert sieve(b"\n".join(rows), "--duplicates", "exact")[0] == [rows[0], rows[2], rows[3], rows[5]]
    assert sieve(b"\n".join(rows), "--duplicates", "near")[0] == [rows[0], rows[3], rows[5]]
    assert sieve(b"\n".join(rows), "--preset", "none", "--duplicates", "none")[0] == rows
    many = [f"source {chr(97 + i % 26)}{i}x\ttarget" for i in range(110_000)]
    data = ("\n".join(many) + "\n").encode()
    kept, err = sieve(data * 2, "--duplicates", "exact", "--memory", "1M")
    assert len(kept) > 110_000  # 1 MiB holds fewer hashes; later ones are not remembered
    assert "(1,048,576 bytes)" in err
    assert len(sieve(data * 2, "--duplicates", "exact")[0]) == 110_000


def test_explain(sieve):
    rows = [f"source {i}\ttarget {i}\t{i / 100:.2f}".encode() for i in range(100)]
    random.Random(1).shuffle(rows)
    _, err = sieve(b"\n".join(rows), "--min", "3=0.5", "--explain", "2")
    shown = [line.split() for line in err.splitlines() if line.startswith(("  outside", "  inside"))]
    found = [(words[0], float(words[1])) for words in shown]
    assert found == [("outside", 0.49), ("outside", 0.48), ("inside", 0.5), ("inside", 0.51)]
    place = rows.index(b"source 49\ttarget 49\t0.49") + 1
    assert f"row {place}: source 49 | target 49" in err


# Control characters, Unicode spaces and directions, tabs, quotes, combining and wide characters; broken UTF-8.
_ODD = [
    *map(chr, range(1, 10)),
    *map(chr, range(11, 32)),
    "\t\t",
    "\r\r",
    "a" * 300,
    "9" * 300,
    '"""',
    "١٢",
    "e\u0301",
]
_ODD += "\x00\x7f\x85\xa0\u00ad\u061c\u200b\u200e\u2028\u2029\u202a\u202e\u2066\ufeff\ufffd\"'`\\ 日😀"
_BROKEN = b"\xff|\xc3|\xed\xa0\x80|\xed\xbf\xbf|\xf4\x90\x80\x80|\xc0\x80|\x80|\xe2\x28\xa1".split(b"|")
_WORDS = ["the", "house", "La", "maison", "12", "3.5", "café", "ne", "pas", "to"]


def odd_lines(count):
    rng = random.Random(11)
    lines = [b"the house\tla maison"]  # says how many columns a row has
    for i in range(1, count):
        if i in (17, 4096, count - 1):
            lines.append((rng.choice(["x", "1 ", "é", "mot "]) * (1 << 20))[: 1 << 20].encode() + b"\tcourt")
            continue
        parts = []
        for _ in range(rng.choice((1, 2, 2, 2, 2, 2, 2, 3))):
            words = (rng.choice(_ODD if rng.random() < 0.3 else _WORDS) for _ in range(rng.randrange(8)))
            raw = " ".join(words).encode()
            at = rng.randrange(len(raw) + 1)
            parts.append(raw[:at] + rng.choice(_BROKEN) + raw[at:] if rng.random() < 0.03 else raw)
        lines.append(b"\t".join(parts) + rng.choice((b"", b"", b"", b"\r")))
    return lines


def test_odd_lines_through_score_and_filter(bitextmine, tiny_model, tmp_path):
    pytest.importorskip("py3langid")
    lines = odd_lines(6_000)
    (tmp_path / "in.tsv").write_bytes(b"\n".join(lines) + b"\n")
    columns = "cosine,margin,length_ratio,numbers,copy,lang,quality,letters,key"
    done = bitextmine.shell(
        f"bitextmine score --src en --tgt fr --columns {columns} < in.tsv | tee scored.tsv | "
        "bitextmine filter --preset strict --min letters=0.1 --explain 3 --rejected bad.tsv > kept.tsv",
        {"BITEXTMINE_MODEL": str(tiny_model)},
        cwd=tmp_path,
    )
    err = done.stderr.decode()
    assert done.returncode == 0 and "Traceback" not in err, err
    scored, kept, bad = (
        (tmp_path / f"{name}.tsv").read_bytes().split(b"\n")[:-1] for name in ("scored", "kept", "bad")
    )
    header = scored.pop(0)
    malformed = 0
    for line, after in zip(lines, scored, strict=True):
        ending = b"\r" * line.endswith(b"\r")
        assert after.startswith(line.removesuffix(b"\r") + b"\t") and after.endswith(ending)
        added = after[len(line) - len(ending) + 1 : len(after) - len(ending)].split(b"\t")
        assert len(added) == 9
        pair = line.count(b"\t") == 1 and line == line.decode(errors="ignore").encode()
        malformed += not pair
        assert all(added) if pair else not any(added)
    bad = [line.rpartition(b"\t")[0] + b"\r" * line.endswith(b"\r") for line in bad]  # without the reason
    assert kept.pop(0) == bad.pop(0) == header
    assert sorted(kept + bad) == sorted(scored)
    counts = filter_counts(err)
    assert (counts["all"], counts["kept"]) == (len(lines), len(kept))
    assert counts["rejected: malformed"] == malformed


def test_a_limit_on_a_column_of_texts_is_an_error(sieve, bitextmine, tmp_path):
    rows = b"a b\tc d\t\ne f\tg h\thigh\n"
    done = bitextmine("filter", "--min", "3=0", "-o", "kept.tsv", stdin=rows, cwd=tmp_path, code=1)
    assert "column 3 holds no numbers; the first value is 'high'" in done.err
    said = bitextmine("filter", "--min", "3=0", stdin=b"a b\tc d\t\ne f\tg h\t\n").err
    assert "column 3 is empty, so every row failed 3 >= 0" in said
    assert not (tmp_path / "kept.tsv").exists()
    assert sieve(rows.replace(b"high", b"2"), "--min", "3=0")[0] == [b"e f\tg h\t2"]


def test_numbers_stay_numbers_through_tmx(bitextmine, tmp_path):
    row = b'{"translation": {"en": "One.", "fr": "Un."}, "score": 16.136873, "src_line": 3, "note": "7"}\n'
    (tmp_path / "in.jsonl").write_bytes(row)
    bitextmine("filter", "in.jsonl", "--duplicates", "exact", "-o", "a.tmx", cwd=tmp_path)
    bitextmine("filter", "a.tmx", "--duplicates", "exact", "-o", "b.jsonl", cwd=tmp_path)
    assert json.loads((tmp_path / "b.jsonl").read_text()) == json.loads(row)
