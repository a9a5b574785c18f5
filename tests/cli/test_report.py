"""`bitextmine report`; tests/reporting looks at the page."""

import pytest

from bitextmine.languages.identify import is_installed

from .helpers import write
from .test_mine import sample

PAIRS = "0.9\tA doctor.\tUn médecin.\n0.8\tA table.\tUne table.\n"


def test_outputs(bm, tmp_path):
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    (tmp_path / "corpus.de").write_text("Guten Tag.\n")
    assert "is the input itself" in bm.refused("report", "pairs.tsv", "-o", "./pairs.tsv", code=2)
    assert "FILE.html" in bm.refused("report", "pairs.tsv", "-o", "corpus.de", code=2)
    (tmp_path / "here.json").write_text('{"a":' * 200 + "[]" + "}" * 200)
    assert "here.json" in bm.refused("report", "pairs.tsv", "--manifest", "here.json", "-o", "x.html")


@pytest.mark.skipif(not is_installed(), reason="needs the extra languages")
def test_pairs_in_the_wrong_language(bm, tmp_path):
    en, fr, de = sample("en"), sample("fr"), sample("de")
    both = zip(en[:60], [*fr[:50], *de[:10]], strict=True)
    write(tmp_path / "pairs.tsv", [f"{1 - i / 1000}\t{src}\t{tgt}" for i, (src, tgt) in enumerate(both)])
    bm("report", "pairs.tsv", "-o", "r.html")
    row = (
        (tmp_path / "r.html").read_text(encoding="utf-8").split("Wrong language<small>")[1].split("</tr>")[0]
    )
    assert ">10<" in row or ">9<" in row
