"""`bitextmine report`; tests/reporting looks at the page."""

PAIRS = "0.9\tA doctor.\tUn médecin.\n0.8\tA table.\tUne table.\n"


def test_outputs(bm, tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "corpus.de").write_text("Guten Tag.\n")
    assert "is the input itself" in bm.refused("report", "pairs.tsv", "-o", "./pairs.tsv", code=2)
    assert "FILE.html" in bm.refused("report", "pairs.tsv", "-o", "corpus.de", code=2)
