"""`bitextmine report`; tests/reporting looks at the page."""

import json

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


@pytest.mark.parametrize("part", ["%ff", "%ED%B3%BF", "\udcff"], ids=ascii)
@pytest.mark.parametrize("given", [True, False])
def test_signatures_that_are_not_utf8(bm, tmp_path, part, given):
    """A manifest found beside the pairs is ignored if it is damaged; one that was asked for is an error."""
    (tmp_path / "pairs.tsv").write_text(PAIRS)
    signature = f"src:en|tgt:fr|k:4|margin:ratio|threshold:{part}"
    manifest = {"kind": "bitext", "signature": signature, "threshold": {"value": 0.5}}
    (tmp_path / "pairs.tsv.json").write_text(json.dumps(manifest))
    options = ["--manifest", "pairs.tsv.json"] if given else []
    result = bm("report", "pairs.tsv", *options, "-o", "report.html", code=None)
    assert "Traceback" not in result.err, result.err
    assert result.code == 0 or (given and "pairs.tsv.json" in result.err)
    if result.code == 0:
        (tmp_path / "report.html").read_text(encoding="utf-8")
