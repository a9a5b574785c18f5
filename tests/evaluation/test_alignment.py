"""Strict and lax F1 of alignments."""

import pytest

from bitextmine.errors import BitextmineError, UsageError
from bitextmine.evaluation.alignment import evaluate_alignment, read_alignments, score_alignments

GOLD = [((0,), (0,)), ((1, 2), (1,)), ((3,), ()), ((4,), (2,)), ((5,), (3, 4)), ((), (5,))]


def test_by_hand():
    found = [
        ((0,), (0,)),  # right
        ((1,), (1,)),  # shares sentences with a link: lax
        ((2,), ()),  # neither
        ((3,), ()),  # right: left out, as in the gold
        ((4,), (3,)),  # neither: gold has 4 with 2
        ((5,), (2, 4)),  # lax
        ((), (5,)),  # right
    ]
    report = score_alignments([found], [GOLD])
    assert report.strict.precision == pytest.approx(3 / 7)
    assert report.lax.precision == pytest.approx(5 / 7)
    # Of the four gold links with two sides one is found; those of 1 and 5 are shared with; 4's is not.
    assert report.strict.recall == pytest.approx(1 / 4)
    assert report.lax.recall == pytest.approx(3 / 4)
    p, r = 3 / 7, 1 / 4
    assert report.strict.f1 == pytest.approx(2 * p * r / (p + r))
    assert report.strict.low <= report.strict.f1 <= report.strict.high


def test_counts_add_up_over_documents_and_repeats_count_once():
    wrong = [((0,), (1,)), ((1,), (0,)), ((1,), (0,)), ((), ())]
    report = score_alignments([GOLD, wrong], [GOLD, [((0,), (0,)), ((1,), (1,))]])
    assert report.strict.precision == pytest.approx(6 / 8)
    assert report.strict.recall == pytest.approx(4 / 6)


def test_both_forms_of_file(tmp_path):
    (tmp_path / "a.txt").write_text("[0]:[0]\n[1, 2]:[1]:0.25\n[3]:[]\n[]:[5]:0.0\n\n")
    (tmp_path / "b.tsv").write_text("0.9\t1\t1\tx\ty\n0.8\t2,3\t2\tx\ty\n0.0\t4\t\tx\t\n0.0\t\t6\t\ty\n")
    expected = [((0,), (0,)), ((1, 2), (1,)), ((3,), ()), ((), (5,))]
    assert read_alignments(tmp_path / "a.txt") == read_alignments(tmp_path / "b.tsv") == [expected]
    report = evaluate_alignment([tmp_path / "b.tsv"], [tmp_path / "a.txt"])
    assert report.strict.f1 == 1


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("[0]:[0]\nhello\n", "line 2"),
        ("0.5\tone\t2\tx\ty\n", "is no link"),
        ("0.5\tname\t1\t2\tx\ty\n", "several documents"),
        ("[0:[0]\n", "line 1"),
    ],
)
def test_other_files_are_refused(tmp_path, text, word):
    (tmp_path / "bad").write_text(text)
    with pytest.raises(BitextmineError, match=word):
        read_alignments(tmp_path / "bad")


def test_a_gold_that_is_none(tmp_path):
    (tmp_path / "gold").write_text("[0]:[]\n")
    with pytest.raises(BitextmineError, match="gold"):
        evaluate_alignment([tmp_path / "gold"], [tmp_path / "gold"])
    with pytest.raises(UsageError, match="1 --gold"):
        evaluate_alignment([tmp_path / "gold", tmp_path / "gold"], [tmp_path / "gold"])


def test_blank_lines_part_documents(bitextmine, tmp_path):
    (tmp_path / "gold").write_text("[0]:[0]\n[1]:[1]\n\n[0]:[0]\n[1]:[2]\n")
    (tmp_path / "found").write_text("[0]:[0]\n[1]:[2]\n\n[0]:[0]\n[1]:[1]\n\n")
    report = evaluate_alignment([tmp_path / "found"], [tmp_path / "gold"])
    assert (report.documents, report.strict.f1) == (2, 0.5)
    (tmp_path / "one").write_text("[0]:[0]\n[1]:[2]\n")
    message = bitextmine.fails("evaluate", "align", "one", "--gold", "gold", cwd=tmp_path)
    assert "1 documents" in message and "gold has 2" in message
    bitextmine("evaluate", "align", "-", "--gold", "-", cwd=tmp_path, code=2)
