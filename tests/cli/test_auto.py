"""--model auto: of the encoders that ship, the one that knows the languages."""

import logging

import pytest

import bitextmine as api
from bitextmine.shipped import SHIPPED, choose_model, languages_of

from .helpers import texts, write

PAIRS = [
    ("The soup needs more salt.", "Do zupy trzeba dodać soli."),
    ("My sister works in a hospital.", "Moja siostra pracuje w szpitalu."),
    ("The train was two hours late.", "Pociąg spóźnił się dwie godziny."),
    ("We bought the tickets yesterday.", "Bilety kupiliśmy wczoraj."),
    ("Close the window, it is cold.", "Zamknij okno, jest zimno."),
    ("The children are playing in the garden.", "Dzieci bawią się w ogrodzie."),
    ("He has never read this book.", "On nigdy nie czytał tej książki."),
    ("The bridge was built in the last century.", "Most zbudowano w zeszłym stuleciu."),
    ("Doctors recommend drinking more water.", "Lekarze zalecają picie większej ilości wody."),
    ("Where did you leave the keys?", "Gdzie zostawiłeś klucze?"),
    ("The city council approved the new budget.", "Rada miasta zatwierdziła nowy budżet."),
    ("Our neighbour's dog barks all night.", "Pies naszego sąsiada szczeka przez całą noc."),
    ("The museum is closed on Mondays.", "W poniedziałki muzeum jest zamknięte."),
    ("I would like a cup of coffee.", "Poproszę filiżankę kawy."),
    ("The farmer sold three horses.", "Rolnik sprzedał trzy konie."),
    ("Winter came early this year.", "W tym roku zima przyszła wcześnie."),
]


def test_the_encoder_is_chosen_by_the_languages(bitextmine, tmp_path):
    """europe5 finds three of these."""
    english, polish = ([pair[side] for pair in PAIRS] for side in (0, 1))
    write(tmp_path / "corpus.en", english)
    write(tmp_path / "corpus.pl", polish[::-1])
    done = bitextmine("mine", "--src", "en", "--tgt", "pl", "--threshold", "none", "--no-clean", cwd=tmp_path)
    found = {*texts(done.out)}
    assert len(found & {*PAIRS}) >= 15
    assert "--model auto: world56, for en and pl" in done.err
    again = api.mine(english, polish[::-1], src_lang="en", tgt_lang="pl", threshold="none", clean=False)
    assert {(pair.src, pair.tgt) for pair in again} == found
    assert again.signature.split("|")[2] in done.err, "the signature names the encoder"


@pytest.mark.parametrize(
    ("langs", "name"),
    [
        ((), SHIPPED[-1]),
        (("en", "fr"), SHIPPED[0]),
        (("en-GB", "fra"), SHIPPED[0]),
        (("en", "und"), SHIPPED[-1]),
        (("en", "pl"), SHIPPED[1]),
        (("en", "cy"), SHIPPED[-1]),
    ],
)
def test_the_first_that_knows_all(langs, name):
    assert choose_model("auto", langs) == name
    assert choose_model("model", langs) == "model"


def test_a_language_that_no_encoder_knows_is_named(bitextmine, tmp_path):
    assert not any("cy" in languages_of(name) for name in SHIPPED)
    write(tmp_path / "corpus.en", ["Good morning.", "The cat sleeps."])
    write(tmp_path / "corpus.cy", ["Bore da.", "Mae'r gath yn cysgu."])
    said = bitextmine("mine", "--src", "en", "--tgt", "cy", "--threshold", "none", cwd=tmp_path).err
    assert f"--model auto: {SHIPPED[-1]}" in said and "was not trained on 'cy'" in said


def test_every_stage_chooses(bitextmine, tmp_path, caplog):
    """score, align and evaluate take the languages from options, names and headers."""
    rows = PAIRS[:6]
    (tmp_path / "pairs.tsv").write_text("".join(f"{s}\t{t}\n" for s, t in rows), encoding="utf-8")
    for side, name in enumerate(("book.en", "book.pl")):
        write(tmp_path / name, [pair[side] for pair in rows])
    queries = ["\t".join(("en", "pl")), *("\t".join(pair) for pair in rows)]
    write(tmp_path / "queries.tsv", queries)
    for command in (
        "score pairs.tsv --src en --tgt pl --columns cosine",
        "align book.en book.pl",
        "embed book.pl",
        "evaluate retrieval --queries queries.tsv",
    ):
        assert "--model auto: world56" in bitextmine(*command.split(), cwd=tmp_path).err, command
    with caplog.at_level(logging.INFO, "bitextmine"):
        api.align(tmp_path / "book.en", tmp_path / "book.pl")
        api.score(rows, columns="cosine", src_lang="en", tgt_lang="pl")
        choose_model("auto", ["en", "de", "fr"])
    notes = [record.message for record in caplog.records]
    assert notes.count("--model auto: world56, for en and pl") == 2
    assert notes[-1] == "--model auto: europe5, for en, de and fr"
