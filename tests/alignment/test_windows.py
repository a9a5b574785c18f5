"""Vectors of windows against encoding the text that they make together."""

import numpy as np
import pytest

import bitextmine
from bitextmine.alignment.windows import EncodedWindows, Form, SumWindows, Windows, make_windows
from bitextmine.encoder import load_encoder

LINES = [
    "The committee met on Tuesday to discuss the budget.",
    "No.",
    "",
    "Last year, 3,412 visitors came to the museum, and more than half of them bought a ticket in advance.",
    "Unaccustomed photolithography notwithstanding, everyone was pleased.",
    "The committee met on Tuesday to discuss the budget.",
    "Der Ausschuss trat am Dienstag zusammen.",
    "¿Quién sabe?",
]


def test_the_form_of_lines():
    lines = [
        "Le 3 mai,",
        "« il pleut »",
        "- 17 -",
        ".....",
        'h * "',
        "1956, p. 3",
        "J.",
        "好",
        "Oh!",
        "1",
        "A b c",
        "",
    ]
    form = Form.of(lines)
    assert [line for line, bare in zip(lines, form.bare, strict=True) if bare] == [
        "- 17 -",
        ".....",
        'h * "',
        "1",
        "",
    ]
    assert np.flatnonzero(form.continued).tolist() == [1, 4]
    assert not Form.of(["all of it", "is in lower case", "Nearly"]).continued.any()
    assert Form.of(["A (b", "C) d.", "E"]).continued.tolist() == [False, True, False]
    lines = ["他来了，", "我走了。", "他说：", "好", "Er kam,", "Ich ging."]
    assert Form.of(lines).continued.tolist() == [False, True, False, False, False, False]
    assert [len(column) for column in Form.of([])] == [0, 0, 0, 0]


def test_the_marks_and_names_of_lines():
    lines = ["« Où est Hélène ? »", "Wo ist Helena?", "Da.", "好。", "好！", "Literatur :", "Ende ...", ""]
    form = Form.of(lines)
    assert form.ending.tolist() == [2, 2, 1, 1, 2, 0, 1, 0]
    names = [set(form.names.ids[slice(*form.names.offsets[i : i + 2])].tolist()) for i in range(len(lines))]
    assert [len(some) for some in names] == [1, 1, 0, 0, 0, 1, 1, 0] and names[0] == names[1] != names[5]
    numbers = Form.of(["es waren 250 m, 2 zu 10", "10 fois, 250m", "15.30"]).names
    assert numbers.lengths.tolist() == [2, 2, 2] and {*numbers.take([0]).ids} == {*numbers.take([1]).ids}


def test_running_sums_are_what_encoding_gives():
    encoder = load_encoder("europe5")
    (windows,) = make_windows(encoder, [LINES * 3], 5)
    assert isinstance(windows, SumWindows)
    for size in range(1, 6):
        count = len(LINES) * 3 - size + 1
        found = windows.vectors(size, 0, count)
        true = encoder.encode([" ".join((LINES * 3)[i : i + size]) for i in range(count)])
        some = np.linalg.norm(true, axis=1) > 0
        assert np.allclose(np.linalg.norm(found, axis=1), some, atol=1e-5)
        # The columns for the order are fitted, not exact; all others are (without repeat_damping).
        assert (np.einsum("ij,ij->i", found, true)[some] > (0.99999 if size == 1 else 0.998)).all()


def test_without_columns_for_order_they_are_exact(tiny_model):
    encoder = load_encoder(tiny_model)
    (windows,) = make_windows(encoder, [LINES], 4)
    for size in (2, 3, 4):
        texts = [" ".join(LINES[i : i + size]) for i in range(len(LINES) - size + 1)]
        assert np.allclose(windows.vectors(size, 0, len(texts)), encoder.encode(texts), atol=1e-5)


def test_documents_encoded_together_are_as_alone():
    encoder = load_encoder("europe5")
    both = make_windows(encoder, [LINES, LINES[3:], []], 3)
    for windows, lines in zip(both, (LINES, LINES[3:], []), strict=True):
        (alone,) = make_windows(encoder, [lines], 3)
        assert len(windows) == len(lines)
        for size in range(1, 4):
            count = max(0, len(lines) - size + 1)
            assert np.array_equal(windows.vectors(size, 0, count), alone.vectors(size, 0, count))
        assert windows.characters.tolist() == [len(line) for line in lines]


def test_any_part_in_any_order():
    encoder = load_encoder("europe5")
    (windows,) = make_windows(encoder, [LINES * 500], 2)
    whole = windows.vectors(2, 0, 3999)
    for start, stop in ((0, 1), (1020, 1030), (5, 3000), (3998, 3999), (7, 7), (0, 3999)):
        assert np.array_equal(windows.vectors(2, start, stop), whole[start:stop])


def test_other_encoders_encode_the_text():
    encoder = load_encoder("europe5")
    windows = EncodedWindows(encoder, LINES, 3)
    for size in (1, 2, 3):
        texts = [" ".join(LINES[i : i + size]) for i in range(len(LINES) - size + 1)]
        assert np.allclose(windows.vectors(size, 0, len(texts)), encoder.encode(texts), atol=1e-3)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
def test_halves(n):
    rows = np.random.default_rng(1).normal(size=(n, 6)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    half = Windows(rows, 1, np.arange(n)).halved()
    assert len(half) == (n + 1) // 2
    for i, row in enumerate(half.vectors(1, 0, len(half))):
        mean = rows[2 * i : 2 * i + 2].sum(axis=0)
        assert np.allclose(row, mean / np.linalg.norm(mean), atol=1e-6)
        assert half.characters[i] == np.arange(n)[2 * i : 2 * i + 2].sum()


def test_align_in_python(tmp_path):
    en = ["Good morning.", "The train to Paris leaves at noon. It is late.", "", "I do not eat meat."]
    fr = ["Bonjour.", "Le train pour Paris part à midi.", "Il est en retard.", "Je ne mange pas de viande."]
    found = bitextmine.align(en, fr, src_lang="en", tgt_lang="fr", model="europe5")
    wanted = [([1], [1]), ([2], [2, 3]), ([4], [4])]
    assert [(link.src_lines, link.tgt_lines) for link in found] == wanted
    assert found[1].tgt == "Le train pour Paris part à midi. Il est en retard." and not found.doubtful
    frame = found.to_frame()
    assert frame.columns.tolist() == ["score", "src_lines", "tgt_lines", "src", "tgt"] and len(frame) == len(
        found
    )
    found.write(tmp_path / "out.tmx")
    assert (tmp_path / "out.tmx").read_text().count("<tu>") == 3
    for name, lines in (("doc.en", en), ("doc.fr", fr)):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    again = bitextmine.align(tmp_path / "doc.en", tmp_path / "doc.fr")
    assert again.links == found.links and again.langs == ("en", "fr")
    with pytest.raises(bitextmine.UsageError, match="found 3"):
        bitextmine.align([*en, 3], fr)
