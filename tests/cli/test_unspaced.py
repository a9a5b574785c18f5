"""Text without spaces between words, mined and scored: Chinese, Japanese and Thai."""

import io
import random

import numpy as np
import pytest

LANGUAGES = ("zh", "ja", "th")
# A language a row: English, Chinese, Japanese, Thai; a sentence is adjective, noun, verb, adjective, noun.
NOUNS = """dog cat house river teacher doctor flower mountain bird child
狗 猫 房子 河流 老师 医生 花朵 山脉 小鸟 孩子
犬 猫 家 川 先生 医者 花 山 鳥 子供
สุนัข แมว บ้าน แม่น้ำ ครู หมอ ดอกไม้ ภูเขา นก เด็ก"""
VERBS = """sees finds loves paints follows remembers
看见 找到 喜爱 描绘 跟随 记得
見る 見つける 愛する 描く 追う 覚える
เห็น พบ รัก วาด ตาม จำ"""
ADJECTIVES = """red old small quiet beautiful tired happy
红色的 古老的 微小的 安静的 美丽的 疲倦的 快乐的
赤い 古い 小さい 静かな 美しい 疲れた 嬉しい
สีแดง เก่า เล็ก เงียบ สวย เหนื่อย มีความสุข"""
SENTENCE = [
    list(zip(*(line.split() for line in part.splitlines()), strict=True))
    for part in (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS)
]


@pytest.fixture(scope="module")
def pairs():
    """Distinct sentences with a number, in English and in each language."""
    rng = random.Random(5)
    found: dict[str, list[tuple[str, str]]] = {}
    for column, lang in enumerate(LANGUAGES, 1):
        rows: dict[str, str] = {}
        while len(rows) < 200:
            words, number = [rng.choice(part) for part in SENTENCE], rng.randrange(10, 100)
            rows[" ".join(["the", *(word[0] for word in words), str(number)])] = (
                f"{''.join(word[column] for word in words)}{number}"
            )
        found[lang] = list(rows.items())
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
def test_mine_and_score(bitextmine, pairs, lang, tmp_path):
    import pandas as pd

    rows = pairs[lang]
    for side, code in enumerate(("en", lang)):
        text = "".join(f"{row[side]}\n" for row in rows)
        (tmp_path / f"corpus.{code}").write_text(text, encoding="utf-8")
    mined = bitextmine("mine", "--src", "en", "--tgt", lang, "--dir", tmp_path).out
    found = {tuple(line.split("\t")[1:3]) for line in mined.splitlines()}
    assert len(found & set(rows)) > 100
    swapped = [(en, other) for (en, _), (_, other) in zip(rows[:50], rows[50:100], strict=True)]
    wrong = [*swapped, *((xx, xx) for _, xx in rows[:20])]
    (tmp_path / "pairs.tsv").write_text(
        "".join(f"{a}\t{b}\n" for a, b in [*rows[100:150], *wrong]), encoding="utf-8"
    )
    columns = ("cosine", "margin", "length_ratio", "numbers", "copy", "letters", "quality")
    asked = ("--columns", ",".join(columns), "--src", "en", "--tgt", lang)
    out = bitextmine("score", tmp_path / "pairs.tsv", *asked).out
    table = pd.read_csv(io.StringIO(out), sep="\t", quoting=3)[list(columns)]
    assert np.isfinite(table.to_numpy()).all()
    good, bad, copies = table[:50], table[50:100], table[100:]
    assert good.quality.median() > 2 * bad.quality.median() and (good["copy"] == 0).all()
    assert (
        (good.numbers == 1).all() and (copies["copy"] == 1).all() and copies.quality.max() < 0.25
    )  # mild drops them
