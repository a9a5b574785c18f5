"""`bitextmine filter`."""

import gzip
import random

import pytest

from .helpers import GOOD, filter_counts, tsv


def test_defaults(score, sieve, tmp_path):
    wrong = "Une phrase tout autre, et bien plus longue que la première, sans un mot commun 77 88."
    rows = [*GOOD, (GOOD[0][0], wrong), GOOD[1]]
    scored, _ = score(tsv(rows))
    kept, err = sieve(b"\n".join(scored) + b"\n", "--rejected", tmp_path / "bad.tsv")
    assert kept == scored[:4]
    bad = (tmp_path / "bad.tsv").read_bytes().splitlines()
    assert bad.pop(0) == scored[0] + b"\treason"
    assert [line.rpartition(b"\t")[0] for line in bad] == scored[4:]
    assert bad[1].endswith(b"\tduplicate (exact)")
    counts = filter_counts(err)
    assert counts["all"] == 5
    assert counts["kept"] == 3
    assert counts["rejected: duplicate (exact)"] == 1


def test_the_reason_is_the_first_failed_rule(sieve, tmp_path):
    rows = [b"a b\tc d\t0.9\tx", b"a b\tc d e f g h\t0.9\tx", b"a b\tc\t0.1\tx", b"a b\tc d\t\tx"]
    rows += [b"a b\tc d\t0.9\ty", b"a"]
    rules = ("--min", "3=0.5", "--max", "length_ratio=2", "--equal", "4=x")
    kept, err = sieve(b"\n".join(rows), *rules, "--rejected", tmp_path / "bad.gz")
    assert kept == [rows[0]]
    reasons = [b"length_ratio <= 2", b"3 >= 0.5", b"no 3", b"4 = x", b"malformed"]
    bad = gzip.decompress((tmp_path / "bad.gz").read_bytes()).splitlines()
    assert bad == [row + b"\t" + reason for row, reason in zip(rows[1:], reasons, strict=True)]
    assert filter_counts(err) == {
        "kept": 1,
        "rejected: malformed": 1,
        "rejected: no 3": 1,
        "rejected: 3 >= 0.5": 1,
        "rejected: length_ratio <= 2": 1,
        "rejected: 4 = x": 1,
        "all": 6,
    }
    assert "rules:3>=0.5,length_ratio<=2,4=x|" in err


def test_every_row_is_kept_or_rejected(score, sieve, tmp_path):
    rng = random.Random(5)
    rows = [(s, t if rng.random() < 0.5 else GOOD[rng.randrange(3)][1]) for s, t in GOOD * 30]
    scored, _ = score(tsv(rows))
    for preset in ("mild", "strict", "cheap"):
        kept, err = sieve(b"\n".join(scored), "--preset", preset, "--rejected", tmp_path / "bad.tsv")
        bad = [line.rpartition(b"\t")[0] for line in (tmp_path / "bad.tsv").read_bytes().splitlines()]
        position = iter(scored)
        assert all(line in position for line in kept)  # a subsequence
        assert kept.pop(0) == bad.pop(0) == scored[0]
        assert sorted(kept + bad) == sorted(scored[1:])
        counts = filter_counts(err)
        assert counts["kept"] == len(kept)
        rejected = sum(n for name, n in counts.items() if name.startswith("rejected"))
        assert counts["all"] == len(scored) - 1 == counts["kept"] + rejected


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
        ("[least]\nx = 1", "least"),
        ("[min]\ncosine = 'high'", "'high'"),
        ("duplicates = 'some'", "exact, near, none"),
        (f"[min]\nscore = {'9' * 5000}\n", "rules.toml"),
        (f"if_present = {'[' * 100_000}{']' * 100_000}\n", "rules.toml"),
    ],
    ids=lambda text: text[:20],
)
def test_bad_rule_files(sieve, tmp_path, text, message):
    (tmp_path / "rules.toml").write_text(text)
    err = sieve(b"a\tb\n", "--rules", tmp_path / "rules.toml", code=1)[1]
    assert message in err and "rules.toml" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min", "beauty=1"), "'beauty'"),
        (("--min", "cosine=1"), "bitextmine score"),
        (("--preset", "mild"), "no column quality"),
        (("--min", "7=1"), "2 columns"),
        (("--min", "key=1"), "holds text"),
        (("--rules", "nowhere.toml"), "nowhere.toml"),
        (("--min", "lang=0.5"), "--src and --tgt"),
    ],
)
def test_bad_rules(sieve, options, message):
    code = 2 if options[1].startswith("lang") else 1
    assert message in sieve(b"a\tb\n", *options, code=code)[1]


def test_named_columns(sieve):
    rows = [b"u\ta\tb\t0.9000\t1.5000", b"u\ta\tb\t0.3000\t9.5000"]
    kept, _ = sieve(
        b"\n".join(rows), "--columns", "cosine,margin", "--min", "cosine=0.5", "--max", "margin=2"
    )
    assert kept == rows[:1]
    header = b"url\tsrc\ttgt\tcosine\tmine\n"
    kept, _ = sieve(header + b"\n".join(rows), "--header", "--min", "mine=2")
    assert kept == [header.rstrip(), rows[1]]


def test_language_rules_without_scores(sieve):
    pytest.importorskip("py3langid")
    rows = tsv([*GOOD, (GOOD[0][0], "Der Arzt kauft ein rotes Fahrrad."), (GOOD[1][1], GOOD[1][0])])
    kept, _ = sieve(rows, "--min", "lang=0.5", "--src", "en", "--tgt", "fr")
    assert kept == tsv(GOOD).splitlines()
    kept, _ = sieve(rows, "--equal", "tgt_lang=de")
    assert len(kept) == 1


def test_language_rules_of_a_preset(score, sieve):
    pytest.importorskip("py3langid")
    wrong = ("The judge sells two umbrellas.", "Der Richter verkauft heute zwei Regenschirme.")
    rows = tsv([*GOOD, wrong])
    scored, _ = score(rows)
    _, err = sieve(b"\n".join(scored), "--preset", "mild")
    assert "rule lang >= 0.05 not applied" in err
    _, err = sieve(b"\n".join(scored), "--preset", "mild", "--src", "en", "--tgt", "fr")
    assert "not applied" not in err
    assert filter_counts(err)["rejected: lang >= 0.05"] == 1


def test_duplicates(sieve):
    rows = [
        *[b"Page 1\tSeite 1"] * 2,
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


# Control characters, Unicode spaces and directions, tabs, quotes, combining and wide characters.
_ODD = [chr(c) for c in range(1, 32) if c != 10]
_ODD += "\x00\x7f\x85\xa0\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\ufeff\ufffd\"'`\\ "
_ODD += ["\t", "\t\t", "\r", "\r\r", "a" * 300, "9" * 300, '"""', "1,2,3", "١٢"]
_ODD += ["e\u0301", "한국어", "日本", "😀", "👩\u200d👩\u200d👧"]
_BROKEN = b"\xff|\xc3|\xed\xa0\x80|\xed\xbf\xbf|\xf4\x90\x80\x80|\xc0\x80|\x80|\xe2\x28\xa1".split(b"|")


def odd_lines(count):
    rng = random.Random(11)
    words = ["the", "house", "La", "maison", "12", "3.5", "café", "ne", "pas", "to"]
    lines = []
    for i in range(count):
        if i == 0:  # says how many columns a row has
            lines.append(b"the house\tla maison")
            continue
        if i in (17, 4096, count - 1):
            side = rng.choice(["x", "1 ", "é", "\x00", "mot "]) * (1 << 20)
            lines.append(f"{side[: 1 << 20]}\tcourt".encode())
            continue
        parts = []
        for _ in range(rng.choice((1, 2, 2, 2, 2, 2, 2, 3))):
            text = " ".join(
                rng.choice(_ODD if rng.random() < 0.3 else words) for _ in range(rng.randrange(8))
            )
            raw = text.encode()
            if rng.random() < 0.03:
                at = rng.randrange(len(raw) + 1)
                raw = raw[:at] + rng.choice(_BROKEN) + raw[at:]
            parts.append(raw)
        lines.append(b"\t".join(parts) + rng.choice((b"", b"", b"", b"\r")))
    return lines


def test_odd_lines_through_score_and_filter(bitextmine, tiny_model, tmp_path):
    pytest.importorskip("py3langid")
    lines = odd_lines(6_000)
    data = b"\n".join(lines) + b"\n"
    (tmp_path / "in.tsv").write_bytes(data)
    columns = "cosine,margin,length_ratio,numbers,copy,lang,quality,letters,key"
    done = bitextmine.shell(
        f"bitextmine score --src en --tgt fr --columns {columns} < in.tsv | tee scored.tsv | "
        "bitextmine filter --preset strict --min letters=0.1 --explain 3 --rejected bad.tsv > kept.tsv",
        {"BITEXTMINE_MODEL": str(tiny_model)},
        cwd=tmp_path,
    )
    err = done.stderr.decode()
    assert done.returncode == 0, err
    assert "Traceback" not in err
    scored = (tmp_path / "scored.tsv").read_bytes().split(b"\n")[:-1]
    header = scored.pop(0)
    assert len(scored) == len(lines)
    for line, after in zip(lines, scored, strict=True):
        ending = b"\r" if line.endswith(b"\r") else b""
        assert after.startswith(line.removesuffix(b"\r") + b"\t")
        assert after.endswith(ending)
        added = after[len(line) - len(ending) + 1 : len(after) - len(ending)].split(b"\t")
        assert len(added) == 9
        pair = line.count(b"\t") == 1 and _is_utf8(line)
        assert all(added) if pair else not any(added)
    kept = (tmp_path / "kept.tsv").read_bytes().split(b"\n")[:-1]
    bad = (tmp_path / "bad.tsv").read_bytes().split(b"\n")[:-1]
    assert kept.pop(0) == _without_last_cell(bad.pop(0)) == header
    assert len(kept) + len(bad) == len(lines)
    without_reason = [_without_last_cell(line) for line in bad]
    assert sorted(kept + without_reason) == sorted(scored)
    counts = filter_counts(err)
    assert counts["all"] == len(lines)
    assert counts["kept"] == len(kept)
    assert counts["rejected: malformed"] == sum(
        not (line.count(b"\t") == 1 and _is_utf8(line)) for line in lines
    )


def _is_utf8(line):
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_last_cell(line):
    ending = b"\r" if line.endswith(b"\r") else b""
    return line.rpartition(b"\t")[0] + ending
