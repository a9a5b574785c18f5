"""`score` and `filter` as a shell runs them: rows in, rows out, whatever the rows are."""

from __future__ import annotations

import gzip
import random
import subprocess
import sys

import pytest
from click.testing import CliRunner

from bitextmine.cli.program import program

GOOD = [
    ("The doctor buys a red bicycle.", "Le médecin achète un vélo rouge."),
    ("The judge sells two umbrellas.", "La juge vend deux parapluies."),
    ("My neighbour finds 7 old maps.", "Mon voisin trouve 7 vieilles cartes."),
]


def tsv(rows) -> bytes:
    return "".join("\t".join(row) + "\n" for row in rows).encode()


@pytest.fixture
def run():
    """Run a command in this process (a process of its own takes seconds to import torch): the lines of its standard
    output, and its standard error. Pipes between real processes come further down."""

    def invoke(command: str, data: bytes, options: tuple[object, ...], code: int) -> tuple[list[bytes], str]:
        done = CliRunner().invoke(program, [command, *map(str, options)], input=data)
        assert done.exit_code == code, done.stderr
        assert done.stdout_bytes == b"" or done.stdout_bytes.endswith(b"\n")
        return done.stdout_bytes.split(b"\n")[:-1], done.stderr

    return invoke


@pytest.fixture
def score(run, tiny_model, monkeypatch):
    monkeypatch.setenv("BITEXTMINE_MODEL", str(tiny_model))
    return lambda data, *options, code=0: run("score", data, options, code)


@pytest.fixture
def sieve(run):
    return lambda data, *options, code=0: run("filter", data, options, code)


def table(err: str) -> dict[str, int]:
    """The counts that `filter` prints."""
    counts = {}
    for line in err.splitlines():
        name, _, rest = line.rpartition("  ")[0].strip().rpartition("  ")
        if rest.strip().replace(",", "").isdigit():
            counts[name.strip()] = int(rest.replace(",", ""))
    return counts


# --- score -----------------------------------------------------------------------------------------------


def test_score_adds_columns_to_each_row(score):
    lines, err = score(tsv(GOOD))
    assert lines.pop(0) == b"src\ttgt\tcosine\tmargin\tlength_ratio\tnumbers\tcopy\tquality"
    assert [line.rsplit(b"\t", 6)[0] for line in lines] == [
        b"\t".join(s.encode() for s in row) for row in GOOD
    ]
    for line in lines:
        cosine, _, length_ratio, numbers, copy, quality = map(float, line.split(b"\t")[2:])
        assert -1 <= cosine <= 1 <= length_ratio
        assert 0 <= min(numbers, copy, quality) <= max(numbers, copy, quality) <= 1
    assert "3 rows scored: cosine, margin, length_ratio, numbers, copy, quality" in err
    assert "|model:" in err


def test_score_only_and_paste(score):
    scored, _ = score(tsv(GOOD), "--columns", "numbers,cosine")
    assert scored.pop(0) == b"src\ttgt\tnumbers\tcosine"
    assert score(tsv(GOOD), "--columns", "numbers,cosine", "--no-header")[0] == scored
    only, _ = score(tsv(GOOD), "--columns", "numbers,cosine", "--score-only")
    assert [
        b"\t".join((row, cells)) for row, cells in zip(tsv(GOOD).splitlines(), only, strict=True)
    ] == scored


def test_columns_by_position_and_by_name(score):
    rows = [("url", "fr", "n", "en")] + [("http://x", fr, str(i), en) for i, (en, fr) in enumerate(GOOD)]
    plain, _ = score(tsv(GOOD), "--columns", "cosine,copy", "--score-only")
    by_number, _ = score(tsv(rows[1:]), "--scol", "4", "--tcol", "2", "--columns", "cosine,copy")
    assert by_number.pop(0) == b"column_1\ttgt\tcolumn_3\tsrc\tcosine\tcopy"
    assert [line.split(b"\t", 4)[4] for line in by_number] == plain
    by_name, _ = score(tsv(rows), "--header", "--scol", "en", "--tcol", "fr", "--columns", "cosine,copy")
    assert by_name[0] == b"url\tfr\tn\ten\tcosine\tcopy"
    assert by_name[1:] == by_number
    # a column that is asked for by name says that there is a header
    assert score(tsv(rows), "--scol", "en", "--tcol", "fr", "--columns", "cosine,copy")[0] == by_name
    only, _ = score(
        tsv(rows), "--header", "--scol", "en", "--tcol", "fr", "--columns", "copy", "--score-only"
    )
    assert only[0] == b"copy"
    _, err = score(tsv(rows), "--header", "--scol", "en", "--tcol", "de", code=1)
    assert "no column is called 'de'; there are url, fr, n, en" in err
    _, err = score(tsv(rows), "--scol", "en", "--no-header", code=2)
    assert "column 'en'" in err
    assert "--no-header" in err
    _, err = score(tsv(rows), "--header", "--scol", "9", code=1)
    assert "no column 9" in err


def test_bad_rows_keep_their_bytes_and_their_place(score):
    rows = [b"a\tb", b"no tab", b"", b"x\ty\tz", b"\xff\xfe\tb", b"\xed\xa0\x80\tb", b"c\td\r", b"e\tf"]
    lines, err = score(b"\n".join(rows), "--columns", "cosine,numbers")
    assert lines.pop(0) == b"src\ttgt\tcosine\tnumbers"
    assert len(lines) == len(rows)
    for i in (1, 2, 3, 4, 5):
        assert lines[i] == rows[i] + b"\t\t"
    assert lines[6].startswith(b"c\td\t")
    assert lines[6].endswith(b"\r")  # a Windows line end stays at the end
    assert lines[7].startswith(b"e\tf\t")
    assert "5 of them are no pairs" in err
    assert "<stdin>: line 2: 1 columns, not 2" in err
    _, err = score(b"\n".join(rows), "--columns", "cosine", "--strict", code=1)
    assert "<stdin>: line 2: 1 columns, not 2" in err
    _, err = score(b"h1\th2\na\tb\n\xff\tb\n", "--header", "--columns", "copy", "--strict", code=1)
    assert "line 3: invalid UTF-8" in err


def test_nothing_in_nothing_out(score, sieve):
    assert score(b"") == ([], score(b"")[1])
    assert sieve(b"")[0] == []
    assert score(b"", "--header", code=1)[1].count("--header wants a first line") == 1
    lines, _ = score(b"\xef\xbb\xbfsrc\ttgt\n", "--header", "--columns", "copy")
    assert lines == [b"src\ttgt\tcopy"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--columns", "cosine,beauty"), "no column is called 'beauty'; there are cosine"),
        (("--columns", "copy,copy"), "twice"),
        (("--columns", "lang"), "--src and --tgt"),
        (("--src-index", "x.npy"), "--tgt-index"),
        (("--src", "xx", "--tgt", "fr"), "'xx' is none of"),
    ],
)
def test_score_errors(score, options, message):
    assert message in score(tsv(GOOD), *options, code=2)[1].replace("\n", "")


def test_a_score_does_not_depend_on_how_the_pipe_is_cut(bitextmine, tiny_model):
    rows = tsv(GOOD * 40)
    environment = bitextmine.environment({"BITEXTMINE_MODEL": str(tiny_model)})
    command = [*bitextmine.argv, "score", "--columns", "cosine,margin", "--window", "50"]
    whole = subprocess.run(command, input=rows, capture_output=True, env=environment, check=True).stdout
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
    for start in range(0, len(rows), 777):
        child.stdin.write(rows[start : start + 777])
        child.stdin.flush()
    assert child.communicate()[0] == whole


def test_every_column_is_in_the_help(bitextmine):
    from bitextmine.scoring.columns.catalogue import COLUMNS
    from bitextmine.scoring.columns.names import default_columns

    text = bitextmine("score", "--help").out
    described = {word.strip(",") for line in text.splitlines() for word in line[:22].split()}
    assert set(COLUMNS) <= described
    assert ",".join(default_columns(False)) in "".join(text.split())


# --- filter ----------------------------------------------------------------------------------------------


def test_score_and_filter_need_no_options(score, sieve, tmp_path):
    wrong = "Une phrase tout autre, et bien plus longue que la première, sans un mot commun 77 88."
    rows = [*GOOD, (GOOD[0][0], wrong), GOOD[1]]
    scored, _ = score(tsv(rows))
    kept, err = sieve(b"\n".join(scored) + b"\n", "--rejected", tmp_path / "bad.tsv")
    assert kept == scored[:4]
    bad = (tmp_path / "bad.tsv").read_bytes().splitlines()
    assert bad.pop(0) == scored[0] + b"\treason"
    assert [line.rpartition(b"\t")[0] for line in bad] == scored[4:]
    assert bad[1].endswith(b"\tduplicate (exact)")
    counts = table(err)
    assert counts["all"] == 5
    assert counts["kept"] == 3
    assert counts["rejected: duplicate (exact)"] == 1


def test_rules_by_flag_name_the_first_that_fails(sieve, tmp_path):
    rows = [
        b"a b\tc d\t0.9\tx",
        b"a b\tc d e f g h\t0.9\tx",
        b"a b\tc\t0.1\tx",
        b"a b\tc d\t\tx",
        b"a b\tc d\t0.9\ty",
        b"a",
    ]
    kept, err = sieve(
        b"\n".join(rows),
        "--min",
        "3=0.5",
        "--max",
        "length_ratio=2",
        "--equal",
        "4=x",
        "--rejected",
        tmp_path / "bad.gz",
    )
    assert kept == [rows[0]]
    bad = dict(
        line.rsplit(b"\t", 1) for line in gzip.decompress((tmp_path / "bad.gz").read_bytes()).splitlines()
    )
    assert bad == {
        rows[1]: b"length_ratio <= 2",
        rows[2]: b"3 >= 0.5",
        rows[3]: b"no 3",
        rows[4]: b"4 = x",
        rows[5]: b"malformed",
    }
    assert table(err) == {
        "kept": 1,
        "rejected: malformed": 1,
        "rejected: no 3": 1,
        "rejected: 3 >= 0.5": 1,
        "rejected: length_ratio <= 2": 1,
        "rejected: 4 = x": 1,
        "all": 6,
    }
    assert "rules:3>=0.5,length_ratio<=2,4=x|" in err


def test_kept_and_rejected_are_all_rows_in_order(score, sieve, tmp_path):
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
        counts = table(err)
        assert counts["kept"] == len(kept)
        assert (
            counts["all"]
            == len(scored) - 1
            == counts["kept"] + sum(n for name, n in counts.items() if name.startswith("rejected"))
        )


def test_rules_from_a_file_and_flags_that_override_it(sieve, tmp_path):
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
        ("[least]\nx = 1", "'least = "),
        ("[min]\ncosine = 'high'", "min cosine: expected a number, found 'high'"),
        ("duplicates = 'some'", "choose one of exact, near, none"),
    ],
)
def test_rules_that_are_none(sieve, tmp_path, text, message):
    (tmp_path / "rules.toml").write_text(text)
    err = sieve(b"a\tb\n", "--rules", tmp_path / "rules.toml", code=1)[1]
    assert message in err
    assert "rules.toml" in err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--min", "beauty=1"), "no column is called 'beauty'"),
        (("--min", "cosine=1"), "add it with 'bitextmine score'"),
        (("--preset", "mild"), "the rows have no column cosine"),
        (("--min", "7=1"), "the rows have 2 columns, and the rules or --columns speak of 7"),
        (("--min", "key=1"), "holds text"),
        (("--rules", "nowhere.toml"), "nowhere.toml: cannot read the rules"),
    ],
)
def test_filter_errors(sieve, options, message):
    assert message in sieve(b"a\tb\n", *options, code=1)[1]


@pytest.mark.parametrize(
    ("options", "message"),
    [(("--min", "copy=much"), "'much' is not a number"), (("--min", "lang=0.5"), "--src and --tgt")],
)
def test_filter_usage(sieve, options, message):
    assert message in sieve(b"a\tb\n", *options, code=2)[1]


def test_columns_have_the_names_they_were_given(sieve):
    rows = [b"u\ta\tb\t0.9000\t1.5000", b"u\ta\tb\t0.3000\t9.5000"]
    kept, _ = sieve(
        b"\n".join(rows), "--columns", "cosine,margin", "--min", "cosine=0.5", "--max", "margin=2"
    )
    assert kept == rows[:1]
    header = b"url\tsrc\ttgt\tcosine\tmine\n"
    kept, _ = sieve(header + b"\n".join(rows), "--header", "--min", "mine=2")
    assert kept == [header.rstrip(), rows[1]]


def test_language_rules_on_rows_that_are_not_scored(sieve):
    pytest.importorskip("py3langid")
    rows = tsv([*GOOD, (GOOD[0][0], "Der Arzt kauft ein rotes Fahrrad."), (GOOD[1][1], GOOD[1][0])])
    kept, _ = sieve(rows, "--min", "lang=0.5", "--src", "en", "--tgt", "fr")
    assert kept == tsv(GOOD).splitlines()
    kept, _ = sieve(rows, "--equal", "tgt_lang=de")
    assert len(kept) == 1


def test_duplicates(sieve):
    rows = [
        b"Page 1\tSeite 1",
        b"Page 1\tSeite 1",
        b"page 2!\tSEITE 3",
        b"Page 1\tBlatt 1",
        b" Page  1\tSeite 1 ",
        b"Page\tSeite",
    ]
    assert sieve(b"\n".join(rows), "--duplicates", "exact")[0] == [rows[0], rows[2], rows[3], rows[5]]
    assert sieve(b"\n".join(rows), "--duplicates", "near")[0] == [rows[0], rows[3], rows[5]]
    assert sieve(b"\n".join(rows), "--preset", "none", "--duplicates", "none")[0] == rows
    many = [f"source {chr(97 + i % 26)}{i}x\ttarget" for i in range(200_000)]
    data = ("\n".join(many) + "\n").encode()
    kept, err = sieve(data * 2, "--duplicates", "exact", "--memory", "1M")
    assert len(kept) > 200_000  # more hashes than 1 MiB holds: later ones are not remembered
    assert "the table of pairs seen is full (1,048,576 bytes)" in err
    assert len(sieve(data * 2, "--duplicates", "exact")[0]) == 200_000


def test_explain_shows_the_nearest_on_both_sides(sieve):
    rows = [f"source {i}\ttarget {i}\t{i / 100:.2f}".encode() for i in range(100)]
    random.Random(1).shuffle(rows)
    _, err = sieve(b"\n".join(rows), "--min", "3=0.5", "--explain", "2")
    shown = [line.split() for line in err.splitlines() if line.startswith(("  outside", "  inside"))]
    assert [(words[0], float(words[1])) for words in shown] == [
        ("outside", 0.49),
        ("outside", 0.48),
        ("inside", 0.50),
        ("inside", 0.51),
    ]
    assert (
        f"row {rows.index(b'source 49' + bytes([9]) + b'target 49' + bytes([9]) + b'0.49') + 1}: source 49 | target 49"
        in err
    )


def test_a_reader_that_leaves_ends_the_pipe_quietly(bitextmine):
    child = bitextmine.start(
        "filter",
        "--duplicates",
        "exact",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    child.stdout.close()
    with pytest.raises(BrokenPipeError):
        while True:
            child.stdin.write(b"a\tb\n" * 100_000)
    child.stdin = None
    assert b"Traceback" not in child.stderr.read()
    assert child.wait(30) == 141


# --- options that do not go together, extras that are missing ---------------------------------------------


def test_an_output_is_neither_the_input_nor_the_other_output(score, sieve, tmp_path):
    pairs, other = tmp_path / "pairs.tsv", tmp_path / "other.tsv"
    pairs.write_bytes(tsv(GOOD))
    (tmp_path / "link.tsv").symlink_to(pairs)
    rule = ("--max", "copy=0.5")
    for options in (
        ("-o", pairs),
        ("--rejected", pairs),
        ("-o", other, "--rejected", other),
        ("-o", other, "--rejected", tmp_path / "." / "other.tsv"),
        ("--rejected", tmp_path / "link.tsv"),
        ("--rejected", "-"),
    ):
        err = sieve(b"", pairs, *rule, *options, code=2)[1]
        assert str(options[-1]) in err or "standard output" in err
        assert "name another file" in err
    assert "is the input itself" in score(b"", pairs, "--columns", "copy", "-o", pairs, code=2)[1]
    assert pairs.read_bytes() == tsv(GOOD)
    assert not other.exists()
    sieve(b"", pairs, *rule, "-o", "/dev/null", "--rejected", "/dev/null")


def test_options_that_change_nothing_are_told(score, sieve, tmp_path):
    for command, options in ((score, ("--columns", "copy")), (sieve, ("--max", "copy=0.5"))):
        for side in ("--src", "--tgt"):
            assert f"{side} alone says nothing" in command(tsv(GOOD), *options, side, "en", code=2)[1]
        told = "--src and --tgt change nothing"
        assert told in command(tsv(GOOD), *options, "--src", "en", "--tgt", "fr")[1]
        assert told not in command(tsv(GOOD), *options)[1]
    _, err = score(
        tsv(GOOD), "--columns", "copy", "--src-index", tmp_path / "no", "--tgt-index", tmp_path / "no"
    )
    assert "--src-index and --tgt-index change nothing" in err


def test_one_row_is_one_row(score):
    assert "1 row scored" in score(tsv(GOOD[:1]), "--columns", "copy")[1]
    assert "1 of them is no pair and has empty scores" in score(b"a\tb\nc\n", "--columns", "copy")[1]


def test_a_preset_tells_languages_where_they_are_stated(score, sieve):
    pytest.importorskip("py3langid")
    wrong = ("The judge sells two umbrellas.", "Der Richter verkauft heute zwei Regenschirme.")
    rows = tsv([*GOOD, wrong])
    scored, _ = score(rows)
    _, err = sieve(b"\n".join(scored), "--preset", "mild")
    assert "rule lang >= 0.1 not applied" in err
    _, err = sieve(b"\n".join(scored), "--preset", "mild", "--src", "en", "--tgt", "fr")
    assert "not applied" not in err
    assert table(err)["rejected: lang >= 0.1"] == 1


@pytest.mark.parametrize(
    ("command", "options", "extra"),
    [
        ("score", ("--columns", "lang", "--src", "en", "--tgt", "fr"), "languages"),
        ("score", ("--columns", "tgt_lang"), "languages"),
        ("filter", ("--min", "lang=0.5", "--src", "en", "--tgt", "fr"), "languages"),
        ("filter", ("--equal", "src_lang=en"), "languages"),
        ("score", ("--columns", "copy", "-o", "x.parquet"), "parquet"),
    ],
)
def test_an_extra_that_is_not_installed_is_named(run, monkeypatch, tmp_path, command, options, extra):
    monkeypatch.chdir(tmp_path)
    for module in ("py3langid", "py3langid.langid", "pyarrow", "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, module, None)
    lines, err = run(command, tsv(GOOD), options, 1)
    assert f"pip install 'bitextmine[{extra}]'" in err
    assert lines == []
    assert list(tmp_path.iterdir()) == []


# --- Parquet ---------------------------------------------------------------------------------------------


def test_parquet_in_and_out(score, sieve, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    texts = [*GOOD, ("no target", None), ("tab\there", "new\nline"), ("a", "b")]
    source = pyarrow.table(
        {"id": list(range(6)), "en": [s for s, _ in texts], "fr": [t for _, t in texts], "x": [0.5] * 6}
    )
    parquet.write_table(source, tmp_path / "in.parquet", row_group_size=2)
    _, err = score(
        b"",
        tmp_path / "in.parquet",
        "--scol",
        "en",
        "--tcol",
        "fr",
        "--columns",
        "copy,key",
        "-o",
        tmp_path / "out.parquet",
    )
    scored = parquet.read_table(tmp_path / "out.parquet")
    assert scored.column_names == ["id", "en", "fr", "x", "copy", "key"]
    assert scored.select(source.column_names).equals(source)
    assert scored["copy"].to_pylist()[3] is None
    assert "line 4: no fr" in err

    lines, _ = score(
        b"", tmp_path / "in.parquet", "--scol", "en", "--tcol", "fr", "--columns", "copy", "--header"
    )
    assert lines[0] == b"id\ten\tfr\tx\tcopy"
    assert (
        lines == score(b"", tmp_path / "in.parquet", "--scol", "en", "--tcol", "fr", "--columns", "copy")[0]
    )
    assert lines[4] == b"3\tno target\t\t0.5000\t"
    assert lines[5].startswith(b"4\ttab here\tnew line\t0.5000\t")

    _, err = sieve(
        b"",
        tmp_path / "out.parquet",
        "--scol",
        "en",
        "--tcol",
        "fr",
        "--min",
        "copy=0.1",
        "--max",
        "id=4",
        "-o",
        tmp_path / "kept.parquet",
        "--rejected",
        tmp_path / "bad.tsv",
    )
    kept = parquet.read_table(tmp_path / "kept.parquet")
    assert kept.schema.equals(scored.schema)
    bad = (tmp_path / "bad.tsv").read_bytes().splitlines()
    assert bad.pop(0) == b"id\ten\tfr\tx\tcopy\tkey\treason"  # the names of the Parquet file
    assert kept.num_rows + len(bad) == 6
    assert table(err)["rejected: malformed"] == 1

    _, _ = sieve(tsv(GOOD), "--min", "numbers=0", "-o", tmp_path / "text.parquet")
    assert parquet.read_table(tmp_path / "text.parquet").to_pydict() == {
        "src": [s for s, _ in GOOD],
        "tgt": [t for _, t in GOOD],
    }
    scored, _ = score(tsv(GOOD))
    sieve(b"\n".join(scored), "-o", tmp_path / "scored.parquet")
    kept = parquet.read_table(tmp_path / "scored.parquet")
    names = ["src", "tgt", "cosine", "margin", "length_ratio", "numbers", "copy", "quality"]
    assert kept.column_names == names
    cells = [float(line.rpartition(b"\t")[2]) for line in scored[1:]]
    assert kept["quality"].to_pylist() == pytest.approx(cells)
    sieve(
        b"",
        tmp_path / "scored.parquet",
        "--preset",
        "strict",
        "-o",
        tmp_path / "strict.tsv",
        "--rejected",
        "-",
    )
    _, _ = sieve(b"", "--min", "numbers=0", "-o", tmp_path / "none.parquet")
    assert parquet.read_table(tmp_path / "none.parquet").num_rows == 0


def test_a_file_that_is_no_parquet(sieve, tmp_path):
    pytest.importorskip("pyarrow")
    (tmp_path / "x.parquet").write_text("a\tb\n")
    assert "not a Parquet file" in sieve(b"", tmp_path / "x.parquet", "--min", "copy=0", code=1)[1]
    assert "no such file" in sieve(b"", tmp_path / "y.parquet", "--min", "copy=0", code=1)[1]


# --- anything at all -------------------------------------------------------------------------------------

_ODD = (
    [chr(c) for c in range(1, 32) if c != 10]
    + list("\x00\x7f\x85\xa0\u00ad\u061c\u200b\u200e\u200f\u2028\u2029\u202a\u202e\u2066\ufeff\ufffd\"'`\\ ")
    + [
        "\t",
        "\t\t",
        "\r",
        "\r\r",
        '"""',
        "1,2,3",
        "١٢",
        "e\u0301",
        "한국어",
        "日本",
        "😀",
        "👩‍👩‍👧",
        "a" * 300,
        "9" * 300,
    ]
)
_BROKEN = [
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xed\xbf\xbf",
    b"\xf4\x90\x80\x80",
    b"\xc0\x80",
    b"\x80",
    b"\xe2\x28\xa1",
]


def odd_lines(count: int) -> list[bytes]:
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


def test_ten_thousand_odd_lines_through_score_and_filter(bitextmine, tiny_model, tmp_path):
    pytest.importorskip("py3langid")
    lines = odd_lines(10_000)
    data = b"\n".join(lines) + b"\n"
    (tmp_path / "in.tsv").write_bytes(data)
    bin_ = " ".join(bitextmine.argv)
    script = f"""
        set -o pipefail
        {bin_} score --src en --tgt fr --columns cosine,margin,length_ratio,numbers,copy,lang,quality,letters,key \
            < in.tsv | tee scored.tsv |
        {bin_} filter --preset strict --min letters=0.1 --explain 3 --rejected bad.tsv > kept.tsv
    """
    done = subprocess.run(
        ["bash", "-c", script],
        cwd=tmp_path,
        env=bitextmine.environment({"BITEXTMINE_MODEL": str(tiny_model)}),
        capture_output=True,
        check=False,
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
    counts = table(err)
    assert counts["all"] == len(lines)
    assert counts["kept"] == len(kept)
    assert counts["rejected: malformed"] == sum(
        not (line.count(b"\t") == 1 and _is_utf8(line)) for line in lines
    )


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _without_last_cell(line: bytes) -> bytes:
    ending = b"\r" if line.endswith(b"\r") else b""
    return line.rpartition(b"\t")[0] + ending
