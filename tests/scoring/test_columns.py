"""The columns of `score`, one kind after the other."""

import math

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from bitextmine.encoder import load_encoder
from bitextmine.encoder.folder import QUALITY
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.scoring.api import score
from bitextmine.scoring.columns.catalogue import (
    COLUMNS,
    LEAST_AROUND,
    PairTexts,
    Request,
    Tools,
    identifier,
    pair_hash,
    pair_key,
    pair_script,
)
from bitextmine.scoring.columns.evidence import unlike
from bitextmine.scoring.columns.numbers import number_counts, roman_value, word_values
from bitextmine.scoring.columns.quality import (
    BOTH_INPUTS,
    INPUTS,
    NEGATION_INPUTS,
    PIECE_INPUTS,
    SENTENCE_INPUTS,
    SIDE_INPUTS,
    Networks,
    Quality,
    language_number,
    similarity,
)
from bitextmine.shipped import SHIPPED, languages_of, shipped_folder


def column(name, src, tgt):
    return PairTexts([src], [tgt], Tools()).column(name)[0]


def number_agreement(src, tgt):
    return column("numbers", src, tgt)


@pytest.mark.parametrize(
    ("src", "tgt"),
    [
        ("no number at all", "aucun nombre"),
        ("1,234.5 kg", "1 234,5 kg"),
        ("1,234.5 kg", "1.234,5 kg"),
        ("1,234.5 kg", "1'234.5 kg"),
        ("1.50 euros", "1,5 euro"),
        ("version 2.0", "version 2"),
        ("at 10:30", "à 10 h 30"),
        ("at 3 pm", "à 15 heures"),
        ("in 1992 300 people", "300 personnes en 1992"),
        ("the 1990s", "die 90er"),
        ("2 million", "2 000 000"),
        ("3.5 billion", "3 500 millions"),
        ("5 тыс.", "5,000"),
        ("21 men", "vingt et un hommes"),
        ("the twentieth century", "le 20e siècle"),
        ("the 20th century", "le XXe siècle"),
        ("Louis XIV", "Louis 14"),
        ("the 1st", "le premier"),
        ("007", "7"),
        ("١٢٣", "123"),
        ("um 15:00 Uhr", "om 15 uur"),
        ("at 7:00", "à 7 h"),
        ("at 7", "at 7:00"),
        ("7 a.m.", "7h00"),
        ("3:30 pm", "15.30 Uhr"),
        ("from 3 to 5 pm", "de 15 à 17"),
        ("下午3点", "3 pm"),
        ("오후 3시 30분", "15:30"),
        ("3 million", "300万"),
        ("350 million yen", "3億5000万円"),
        ("in 2024", "二〇二四年"),
        ("in June", "6월에"),
        ("On 3 May 2018", "2018年5月3日"),
        ("en octubre", "vào tháng 10"),
        ("in the 19th century", "1800-luvun"),
        ("at 3:30.", "a las tres y media."),
        ("2,000,000,000,000 yen", "2万亿元"),
        ("1,200,000,000,000", "一万二千亿"),
        ("200,000,000,000 baht", "สองแสนล้านบาท"),
        ("in 25 years", "ในยี่สิบห้าปี"),
        ("20 εκατομμυρίων", "20 million"),
        ("2 lakh", "200,000"),
        ("5 lakh", "५ लाख"),
        ("1.5 million", "1,5 Mio."),
        ("½", "0,5"),
        ("2 1/2 cups", "2½ Tassen"),
        ("three quarters", "3/4"),
        ("1½ hours", "one and a half hours"),
        ("at 7 p.m.", "um 7 Uhr abends"),
        ("12 a.m.", "0:00"),
        ("am 7. Mai um 7", "on 7 May at 7 p.m."),
        ("3 o'clock in the afternoon", "15 Uhr"),
        ("half past three", "15:30"),
        ("at half past 3", "um halb 4"),
        ("a quarter to five", "16:45"),
        ("15:30", "下午三点半"),
        ("at noon", "à 12h"),
        ("12 a.m.", "minuit"),
        ("2,5.", "Two and a Half."),
        ("1½ hours", "anderthalb Stunden"),
        ("twelve thousand", "1万2000"),
        ("1,234.5", "١٬٢٣٤٫٥"),
        ("between 10:00-11:00 pm", "mezi 22:00–23:00"),
    ],
)
def test_numbers_that_agree(src, tgt):
    assert number_agreement(src, tgt) == 1
    assert number_agreement(tgt, src) == 1


@pytest.mark.parametrize(
    ("src", "tgt", "agreement"),
    [
        ("5 men", "6 hommes", 0),  # one clash
        ("20 men", "200 hommes", 0),  # zeros count where no word gives a scale
        ("20% for 8.5 billion", "200 % pour 8,5 milliards", 1 / 2),  # nor at another number
        ("23 million shares", "230 millones de acciones", 0),
        ("10,000 people", "10.0 Leute", 0),
        ("3 men", "15 hommes", 0),  # another clock only where the time is said
        ("5 of 10", "5 sur 11", 1 / 2),
        ("7 men", "des hommes", 1 / 2),  # left out is half as bad as contradicted
        ("7 men", "sixteen", 1 / 2),
        ("1 2 3 4", "1 2 3 5", 3 / 4),
        ("12 and 12", "12", 3 / 4),
        ("10:30", "10 h 45", 1 / 2),
        ("at 7:00", "um 7:30", 0),
        ("at half past 3", "um halb 6", 0),
        ("half past three", "15:45", 1 / 2),
        ("at noon", "um 13 Uhr", 1 / 2),
        ("300万", "3億", 0),
        ("2½ cups", "2¼ tasses", 0),
        ("at 7 a.m.", "at 7 p.m.", 0),
        ("at 7 a.m. on 5 May", "um 7 Uhr abends am 5. Mai", 1 / 2),
        ("上午7点", "下午7点", 0),
    ],
)
def test_numbers_that_do_not(src, tgt, agreement):
    assert number_agreement(src, tgt) == pytest.approx(agreement)
    assert number_agreement(tgt, src) == pytest.approx(agreement)


@pytest.mark.parametrize(
    ("digits", "words", "lang"),
    [
        ("350", "three hundred and fifty", "en"),
        ("1,205", "one thousand two hundred and five", "en"),
        ("25 000", "twenty-five thousand", "en"),
        ("300万人", "three million people", "en"),
        ("200,000", "deux cent mille", "fr"),
        ("300", "kolmesataa", "fi"),
        ("2,000,000", "два миллиона", "ru"),
        ("200,000", "दो लाख", "hi"),
        ("47", "सैंतालीस", "hi"),
        ("25", "পঁচিশ", "bn"),
        ("40", "ორმოცი", "ka"),
    ],
)
def test_words_of_the_stated_languages_excuse_digits(digits, words, lang):
    assert number_counts(digits, words, ("en", lang)) == (1, 0, 0)
    assert number_counts(words, digits, (lang, "en")) == (1, 0, 0)
    other = digits.translate(str.maketrans("12345678", "23456789"))
    # The five languages always count, and of a script of its own the language is known.
    assert number_counts(digits, words) == ((0, 1, 0) if lang == "fi" else (1, 0, 0))
    assert number_counts(other, words, ("en", lang)) == (0, 1, 0)


def test_changing_a_number_never_goes_unnoticed():
    rng = np.random.default_rng(1)
    for _ in range(300):
        values = rng.integers(21, 10**6, rng.integers(1, 5)).tolist()
        changed = [*values]
        at = rng.integers(len(values))
        changed[at] = int(values[at]) + int(rng.integers(1, 7))
        text = "from {} to".format(" and ".join(map(str, values)))
        other = "de {} à".format(" et ".join(map(str, changed)))
        assert number_agreement(text, text) == 1
        assert number_agreement(text, other) < 1


@pytest.mark.parametrize(
    "text",
    [
        "1 " * 500_000,
        "1-" * 500_000,
        "9" * 1_000_000,
        "٣:" * 400_000,
        "7 h 3万" * 150_000,
        "111 " * 250_000,
        "a.m " * 250_000 + "1",
        "half 3 " * 150_000,
    ],
)
def test_endless_tables_take_no_quadratic_time(text):
    """Which would take longer than pytest lets a test run."""
    assert 0 <= number_agreement(text, text[::-1] + " 4") <= 1
    assert number_agreement(text, text) == 1


# 48, 365 and 2017 as num2words spells them; Czech, Slovak, Swedish, Danish and Turkish as their dictionaries do.
IN_WORDS = """
ar|ثمانية وأربعون|ثلاثمائة وخمسة وستون|ألفان وسبعة عشر
az|qırx səkkiz|üç yüz altmış beş|iki min on yeddi
bn|আটচল্লিশ|তিনশত পঁয়ষট্টি|দুই হাজার সতের
ca|quaranta-vuit|tres-cents seixanta-cinc|dos mil disset
cs|čtyřicet osm|tři sta šedesát pět|dva tisíce sedmnáct
da|otteogfyrre|tre hundrede og femogtres|to tusind og sytten
de|achtundvierzig|dreihundertfünfundsechzig|zweitausendsiebzehn
en|forty-eight|three hundred and sixty-five|two thousand and seventeen
es|cuarenta y ocho|trescientos sesenta y cinco|dos mil diecisiete
fa|چهل و هشت|سیصد و شصت و پنج|دو هزار و هفده
fi|neljäkymmentäkahdeksan|kolmesataakuusikymmentäviisi|kaksituhatta seitsemäntoista
fr|quarante-huit|trois cent soixante-cinq|deux mille dix-sept
he|ארבעים ושמונה|שלוש מאות שישים וחמש|אלפיים ושבע עשרה
hu|negyvennyolc|háromszázhatvanöt|kétezer-tizenhét
id|empat puluh delapan|tiga ratus enam puluh lima|dua ribu tujuh belas
is|fjörutíu og átta|þrjú hundruð sextíu og fimm|tvö þúsund og sautján
it|quarantotto|trecentosessantacinque|duemiladiciassette
ja|四十八|三百六十五|二千十七
kk|қырық сегіз|үш жүз алпыс бес|екі мың он жеті
lt|keturiasdešimt aštuoni|trys šimtai šešiasdešimt penki|du tūkstančiai septyniolika
lv|četrdesmit astoņi|trīs simti sešdesmit pieci|divi tūkstoši septiņpadsmit
nb|førtiåtte|tre hundre og sekstifem|to tusen og sytten
nl|achtenveertig|driehonderdvijfenzestig|tweeduizendzeventien
pl|czterdzieści osiem|trzysta sześćdziesiąt pięć|dwa tysiące siedemnaście
pt|quarenta e oito|trezentos e sessenta e cinco|dois mil e dezassete
ro|patruzeci și opt|trei sute șaizeci și cinci|două mii șaptesprezece
ru|сорок восемь|триста шестьдесят пять|две тысячи семнадцать
sk|štyridsaťosem|tristo šesťdesiatpäť|dve tisíc sedemnásť
sl|oseminštirideset|tristo petinšestdeset|dva tisoč sedemnajst
sr|četrdeset osam|trista šezdeset pet|dve hiljade sedamnaest
sv|fyrtioåtta|trehundrasextiofem|tvåtusensjutton
th|สี่สิบแปด|สามร้อยหกสิบห้า|สองพันสิบเจ็ด
tr|kırk sekiz|üç yüz altmış beş|iki bin on yedi
uk|сорок вісім|триста шістдесят п'ять|дві тисячі сімнадцять
vi|bốn mươi tám|ba trăm sáu mươi lăm|hai nghìn lẻ mười bảy
"""


@pytest.mark.parametrize("row", IN_WORDS.split("\n")[1:-1], ids=lambda row: row[:2])
def test_composed_number_words(row):
    lang, *texts = row.split("|")
    for text, number in zip(texts, (48, 365, 2017), strict=True):
        assert number_counts(f"{number}", text, ("en", lang))[1:] == (0, 0), text
        assert number_counts(f"{number + 1}", text, ("en", lang))[1:] != (0, 0), text


def test_words_of_two_languages_have_the_value_of_the_stated_one():
    """In Italian, sesto is the sixth."""
    assert word_values("šesto", "sr") == (600,)
    assert word_values("once", "es") == (11,)


def test_roman_numerals():
    wanted = {"I": 1, "IV": 4, "XIX": 19, "XXe": 20, "XLII": 42, "XCIX.": 99, "CCC": 300}
    assert {word: roman_value(word) for word in wanted} == wanted
    assert [roman_value(word) for word in ("", "IIII", "VX", "i", "ABC", "Iq")] == [0] * 6


@pytest.mark.parametrize(
    ("src", "tgt", "script"),
    [
        ("Good morning", "Dobro jutro", "Latn"),
        ("Good morning", "Добро јутро, Ana", "Latn-Cyrl"),
        ("Добро јутро", "Добро утро", "Cyrl"),
        ("早上好", "おはよう、東京都庁", "Hani-Jpan"),
        ("좋은 아침", "Ⴀ 123", "Kore-Geor"),
        ("123", "", "Zyyy"),
    ],
)
def test_script(src, tgt, script):
    assert pair_script(src, tgt) == script


@pytest.mark.parametrize(
    ("src", "tgt", "ratio"),
    [("abcd", " abcdefgh  ", 2), ("abcdefgh", "abcd", 2), ("", "  ", 1), ("", "abc", math.inf)],
)
def test_length_ratio(src, tgt, ratio):
    assert column("length_ratio", src, tgt) == ratio


def test_copied():
    def copied(src, tgt):
        return column("copy", src, tgt)

    assert copied("The red car", "the RED car!") == 1
    assert copied("The red car", "La voiture rouge") == 0
    assert copied("Visit Paris now", "Visitez Paris maintenant") == pytest.approx(1 / 3)
    assert copied("red red red", "red") == 1
    assert copied("我们明天投票", "我们明天开会") == pytest.approx(4 / 6)
    assert copied("ยกเลิก", "ยกเลิก") == 1 and copied("ยกเลิก", "บันทึก") < 0.5
    assert copied("123", "123") == 1
    assert copied("123", "124") == copied("", "") == 0


def test_near_duplicates_share_a_key():
    key = pair_key("Page 3 of 10.", "Page 3 sur 10.")
    assert key == pair_key("  page 4 of 11", "PAGE 4 sur 11 !")
    assert key != pair_key("Page 3 of 10.", "Page 3 de 10.")
    assert key != pair_key("Page 3 sur 10.", "Page 3 of 10.")
    assert len(key) == 16
    assert (
        pair_hash("a b", "c", "exact") == pair_hash("a  b ", "c", "exact") != pair_hash("A b", "c", "exact")
    )
    assert pair_hash("a", "b\tc", "exact") != pair_hash("a\tb", "c", "near")


def test_language():
    pytest.importorskip("py3langid")
    tools = Tools(Request(("lang", "src_lang", "tgt_lang"), ("en", "fr-CA")).checked())
    src = [*["The committee will meet again next week."] * 2, "12", "The house"]
    tgt = [
        "Le comité se réunira à nouveau la semaine prochaine.",
        "Der Ausschuss tritt nächste Woche erneut zusammen.",
        "12",
        "",
    ]
    pairs = PairTexts(src, tgt, tools)
    assert pairs.column("src_lang") == ["en", "en", "und", "en"]
    assert pairs.column("tgt_lang") == ["fr", "de", "und", "und"]
    lang = pairs.column("lang")
    assert lang[0] > 0.9
    assert lang[1] < 0.1
    assert lang[2] == 0.5  # nothing speaks against it
    assert lang[3] == 0.5
    assert ((lang >= 0) & (lang <= 1)).all()


def test_a_language_that_is_not_known_or_not_stated():
    pytest.importorskip("py3langid")
    for langs, message in (
        (("qq", "fr"), "code 'qq'"),
        (("en", ""), "--src requires --tgt"),
        (("", ""), "--src en --tgt fr"),
    ):
        with pytest.raises(BitextmineError, match=message):
            Request(("lang",), langs).checked()
    # Codes are checked without the identifier where an encoder that ships knows the language.
    assert set(languages_of(SHIPPED[-1])) <= identifier().codes


def logistic(network, inputs):
    hidden = np.tanh((inputs - network.mean) / network.scale @ network.hidden.T + network.bias)
    shares = np.exp(hidden @ network.out.T + network.constant)
    slope, shift = network.line
    return 1 / (1 + np.exp(-shift) * (shares[:, 1:].sum(axis=1) / shares[:, 0]) ** slope)


EN = [
    "The council adopted the budget of 2,000 euros for Lisbon on Tuesday, and the mayor was pleased.",
    "My sister plays the piano every evening, but she does not like to sing.",
    "It rained all night long, so the children stayed at home and read a book.",
]
FR = [
    "Le conseil a adopté mardi le budget de 2 000 euros pour Lisbonne, et le maire était content.",
    "Ma sœur joue du piano tous les soirs, mais elle n'aime pas chanter.",
    "Il a plu toute la nuit, alors les enfants sont restés à la maison et ont lu un livre.",
]
SPOILT = [
    "Le conseil a adopté mardi le budget de 3 000 euros pour Lisbonne, et le maire était content.",
    "Le conseil a adopté mardi le budget de 2 000 euros pour Lisbonne",
    "Le conseil a adopté mardi le budget for Lisbon on Tuesday, and the mayor was pleased.",
    "Le conseil a adopté mardi le budget de 2 000 euros le budget de 2 000 euros le budget de 2 000 euros.",
    f"{FR[0]} Ma sœur joue du piano tous les soirs.",
    FR[1],
    EN[0],
]


ZH = [
    "市议会周二通过了里斯本 2,000 欧元的预算，市长很高兴。",
    "我姐姐每天晚上弹钢琴，但她不喜欢唱歌。",
    "整夜都在下雨，所以孩子们待在家里看书。",
]


TH = [
    "สภาเมืองอนุมัติงบประมาณ 2,000 ยูโรสำหรับลิสบอนเมื่อวันอังคาร และนายกเทศมนตรีก็พอใจ",
    "พี่สาวของฉันเล่นเปียโนทุกเย็น แต่เธอไม่ชอบร้องเพลง",
    "ฝนตกทั้งคืน เด็กๆ จึงอยู่บ้านและอ่านหนังสือ",
]


@pytest.mark.parametrize(("lang", "right"), [("zh", ZH), ("th", TH)])
def test_quality_of_languages_that_the_encoder_does_not_know_goes_by_the_texts(lang, right):
    pytest.importorskip("py3langid")
    tools = Tools(Request(("quality",), ("en", lang)), load_encoder("europe5"))
    spoilt = [
        right[0].replace("2,000", "3,000"),
        right[0][:9],
        right[0][:9] + " budget for Lisbon on Tuesday",
        right[0] * 3,
        EN[0],
    ]
    n = len(spoilt)
    found = PairTexts(EN * 20 + [EN[0]] * n, right * 20 + spoilt, tools).column("quality")
    assert 0.5 >= found[:-n].min() > 0.25 > found[-n:].max()


@pytest.mark.parametrize(("model", "stated"), [("europe5", True), ("europe5", False), ("world56", True)])
def test_quality_tells_right_pairs_from_spoilt_ones(model, stated):
    pytest.importorskip("py3langid")
    langs = ("en", "fr") if stated else ("", "")
    tools = Tools(Request(("quality",), langs), load_encoder(model))
    right = PairTexts(EN, FR, tools).column("quality")
    spoilt = PairTexts([EN[0]] * len(SPOILT), SPOILT, tools).column("quality")
    assert right.min() > 0.5 and right.min() > spoilt.max()
    assert not PairTexts(["", EN[0], " "], ["", "\t", FR[0]], tools).column("quality").any()
    networks = Networks.read(shipped_folder(model) / QUALITY)
    pairs = PairTexts(EN, FR, tools)
    inputs = pairs.inputs()
    more = pairs.piece_inputs()
    assert inputs.shape == (3, len(INPUTS)) and more.shape == (3, PIECE_INPUTS)
    numbers = [language_number(lang) for lang in langs]
    shift = sum(row[2] for row in networks.languages.tolist() if row[0] in numbers) / 1000
    alone = logistic(networks.pieces, np.concatenate([inputs, more], axis=1))
    assert right / (1 - right) == pytest.approx(alone / (1 - alone) * math.exp(shift), rel=1e-4)


@pytest.mark.parametrize("langs", [("en", "de"), ("", "")])
def test_both_sides_of_a_translation_weigh_the_same(langs):
    """The weights from their definition, piece by piece."""
    src = ["The old bridge over the river was closed yesterday because of the storm."] * 2
    tgt = ["Die alte Brücke über den Fluss wurde gestern wegen des Sturms gesperrt.", "Die Brücke gestern."]
    encoder, tables = load_encoder("europe5"), load_file(shipped_folder("europe5") / QUALITY)
    levels = {number: level / 1000 for number, level, _ in tables["languages"].tolist()}
    names, norms = encoder.tokenizer.names(), encoder.piece_rows()[1]
    logs = []
    for texts, lang in zip((src, tgt), langs, strict=True):
        totals = np.zeros(2)
        for row, text in enumerate(texts):
            for piece in encoder.tokenizer.encode([text], encoder.max_pieces)[0].ids.tolist():
                if piece < len(names):
                    usual = math.sqrt(len(names[piece]) * norms[piece] / norms.mean())
                    totals[row] += usual * math.exp(tables["weights"][piece] / 32)
        logs.append(np.log(totals * math.exp(levels[language_number(lang)] if lang else 0) + 2))
    ratio, apart = PairTexts(src, tgt, Tools(Request(("quality",), langs), encoder)).piece_inputs()[:, -2:].T
    assert ratio == pytest.approx(logs[1] - logs[0], abs=1e-5)
    assert apart == pytest.approx(abs(ratio))
    assert apart[0] < 0.25 and apart[1] > 0.8


def test_negations_and_names_are_inputs():
    src = [
        "She was unable to pay the bill.",
        "I do not know the answer.",
        "The book that Kowalski wrote is here.",
    ]
    right = [
        "Sie konnte die Rechnung nicht bezahlen.",
        "Die Antwort kenne ich nicht.",
        "Kowalskis Buch ist hier.",
    ]
    wrong = [
        "Sie bezahlte die Rechnung.",
        "Ich kenne die Antwort.",
        "Das Buch, das Lindgren schrieb, ist hier.",
    ]
    tools = Tools(Request(("quality",), ("en", "de")), load_encoder("europe5"))
    names, spelled, apart = 1 + 2 * SIDE_INPUTS + np.array([1, 2, BOTH_INPUTS + NEGATION_INPUTS - 1])
    found = [PairTexts(src, tgt, tools).piece_inputs()[:, [names, spelled, apart]] for tgt in (right, wrong)]
    assert (found[0][:2, 2] < 0.4).all() and (found[1][:2, 2] > 0.4).all()
    assert (found[0][2, :2] < 0.3).all() and (found[1][2, :2] > 0.5).all()
    unstated = PairTexts(src, wrong, Tools(Request(("quality",)), load_encoder("europe5"))).piece_inputs()
    assert not unstated[:, apart].any()


def test_names_without_a_counterpart_from_the_definitions():
    """The inputs and the log odds of each name, word by word."""
    src = ["Yesterday Kowalski praised the European Commission of Delhi.", "Here is Minister Okafor."]
    tgt = ["Hier hat Lindgren die Kommission in Oslo gelobt, sagt Berg.", "Hier ist die Ministerin Brandt."]
    encoder, network = load_encoder("europe5"), Networks.read(shipped_folder("europe5") / QUALITY).words
    tables = load_file(shipped_folder("europe5") / QUALITY)
    odds, directions = tables["names"] / 16, tables["directions"]
    rows, norms = encoder.piece_rows()
    units = rows / np.maximum(1e-30, np.linalg.norm(rows.astype(float), axis=1, keepdims=True))
    known = encoder.tokenizer.names()

    def vector(pieces):
        spoken = [p for p in pieces if p >= len(known) or any(map(str.isalnum, known[p]))]
        return norms[spoken] / norms.mean() @ units[spoken]

    def gain(src, tgt, base):
        return math.log((1.02 - base) / (1.02 - src @ tgt / np.linalg.norm(src) / np.linalg.norm(tgt)))

    def capitals(text):
        return [word[0].isupper() and len(word) > 2 for word in text.split()]

    found = PairTexts(src, tgt, Tools(Request(("quality",)), encoder)).piece_inputs()
    doubts: dict[tuple[int, int], list[float]] = {}
    for row, pair in enumerate(zip(src, tgt, strict=True)):
        words: tuple[list[list[int]], list[list[int]]] = ([], [])
        for text, its in zip(pair, words, strict=True):
            for piece in encoder.tokenizer.encode([text], encoder.max_pieces)[0].ids.tolist():
                if piece < len(known) and known[piece].startswith("▁"):
                    its.append([])
                its[-1].append(piece)
        whole = [vector([piece for word in its for piece in word]) for its in words]
        base = whole[0] @ whole[1] / math.prod(map(np.linalg.norm, whole))
        for side in range(2):
            others = words[1 - side]
            capitalised = [other for other in pair[1 - side].split() if other[0].isupper()]
            capital, there = capitals(pair[side]), capitals(pair[1 - side])
            every = [units[[piece for word in its for piece in word]] for its in words]
            match = every[side] @ every[1 - side].T
            for place, (word, pieces) in enumerate(zip(pair[side].split(), words[side], strict=True)):
                spelled = unlike(word, capitalised, sounds=True)
                pieces = [p for p in pieces if p >= len(known) or any(map(str.isalnum, known[p]))]
                real = [piece for piece in pieces if piece < len(known)]
                best = (units[real] @ units[[piece for other in others for piece in other]].T).max(axis=1)
                if not word[0].isupper() or word in ("Yesterday", "Here", "Hier") or best.mean() >= 0.85:
                    continue
                own, left = vector(pieces), whole[side] - vector(pieces)
                length = np.linalg.norm(own)
                alike = max(own @ other / np.linalg.norm(other) for other in map(vector, others))
                replaced = max(gain(left, whole[1 - side] - vector(other), base) for other in others)
                signs = [best.mean(), best.min(), odds[pieces].mean(), spelled, math.log1p(len(pieces)), 1]
                signs += [
                    gain(left, whole[1 - side], base),
                    replaced,
                    alike / length,
                    math.log(length + 1e-3),
                    *(np.mean(capital), np.mean(there)),
                    capital[place - 1],
                    capital[place + 1] if place + 1 < len(capital) else 0,
                    word.isupper(),
                    math.log1p(len(capital)),
                    math.log((1 + len(there)) / (1 + len(capital))),
                    *(math.log1p(sum(capital)), math.log1p(sum(there))),
                    place / len(capital),
                    *(match.max(axis=1).mean(), match.max(axis=0).mean()),
                    *found[row, -4:-2],  # of `deletions`
                    *directions @ own,
                ]
                odd = math.log(1 / logistic(network, np.array([signs]))[0] - 1)
                doubts.setdefault((row, side), []).append(min(max(odd, -6), 6))
    worst = [[max(doubts[row, side]) for row in range(2)] for side in range(2)]
    total = [
        [min(3, sum(1 / (1 + math.exp(-odd)) for odd in doubts[row, side])) for row in range(2)]
        for side in range(2)
    ]
    begin = 1 + 2 * SIDE_INPUTS
    for side in range(2):
        last = 1 + SIDE_INPUTS * (side + 1)
        assert found[:, last - 2] == pytest.approx(worst[side], abs=2e-3)
        assert found[:, last - 1] == pytest.approx(total[side], abs=2e-3)
    assert found[:, begin + 2] == pytest.approx(np.min(worst, axis=0), abs=2e-3)
    assert found[:, begin + 3] == pytest.approx(np.min(total, axis=0), abs=2e-3)
    assert np.array(worst).min() > 0


@pytest.mark.parametrize("model", ["europe5", "world56"])
def test_sentences_that_the_other_side_lacks_are_inputs(model):
    src = [
        "The watch is slow. We arrived at noon!",
        "1. Open the door ... and close it again?",
        "",
        "...",
        "No end here",
    ]
    tgt = [
        "Wir kamen mittags an!",
        "1. Öffnen Sie die Tür",
        "Etwas. Mehr davon.",
        "Nichts.",
        "Kein Ende hier. 2.",
    ]
    encoder = load_encoder(model)
    begin = 1 + 2 * SIDE_INPUTS + BOTH_INPUTS + NEGATION_INPUTS
    found = PairTexts(src, tgt, Tools(Request(("quality",)), encoder)).piece_inputs()
    found = found[:, begin : begin + 2 * SENTENCE_INPUTS].reshape(len(src), 2, SENTENCE_INPUTS)
    assert found[0, 0, 2] > 2 * found[0, 1, 2]  # the watch
    rows, norms = encoder.piece_rows()
    names = encoder.tokenizer.names()
    pieces = [encoder.tokenizer.encode(side, encoder.max_pieces)[0] for side in (src, tgt)]
    for row in range(len(src)):
        ids = [side.ids[side.offsets[row] : side.offsets[row + 1]].tolist() for side in pieces]
        for side, (own, others) in enumerate((ids, ids[::-1])):
            sentences, ended = [[]], False
            for piece in own:
                ends = piece < len(names) and set(names[piece].strip("▁")) in ({"."}, {"!"}, {"?"})
                if ended and not ends:
                    sentences.append([])
                if not ends:
                    a = rows[piece].astype(float)
                    cosines = [
                        a @ b / max(1e-30, np.linalg.norm(a) * np.linalg.norm(b))
                        for b in rows[others].astype(float)
                    ]
                    sentences[-1].append((norms[piece] / norms.mean(), max(0, *cosines, 0)))
                ended = ends
            means = [sum(w * c for w, c in some) / max(1e-9, sum(w for w, _ in some)) for some in sentences]
            overall = sum(w * c for some in sentences for w, c in some) / max(
                1e-9, sum(w for some in sentences for w, _ in some)
            )
            long = [at for at, some in enumerate(sentences) if len(some) > 1]
            lowest = min([overall, *(means[at] for at in long)])
            lost = max([0, *(sum(w for w, _ in sentences[at]) * (0.45 - means[at]) for at in long)])
            wanted = [lowest, lowest - overall, math.log1p(lost), math.log1p(len(long))]
            assert found[row, side] == pytest.approx(wanted, abs=1e-5)


def test_lengths_are_judged_by_the_corpus_where_no_usual_ratio_is_known():
    """What is usual at hand, a third of the characters, is no sign of a wrong pair."""
    n = 2 * LEAST_AROUND
    src, tgt = [f"{'word ' * 12}{i}" for i in range(n)], [f"{'字' * 20}{i}" for i in range(n)]
    tgt[0] = "字" * 4
    for langs in (("en", "km"), ("", "")):
        vectors = Vectors(dict(zip(src + tgt, unit(np.random.default_rng(1), 2 * n), strict=True)))
        tools = Tools(Request(("quality",), langs), vectors)
        deviation = PairTexts(src, tgt, tools).inputs()[:, INPUTS.index("length")]
        assert deviation[1:].max() < 0.1 and deviation[0] > 0.6


def test_files_of_networks(tmp_path):
    path = tmp_path / QUALITY
    content = load_file(shipped_folder("europe5") / QUALITY)
    for name, change, message in (
        ("plain.out", lambda a: a * np.nan, "'plain.out' holds NaN"),
        ("pieces.hidden", lambda a: a[:, 1:].copy(), "not the networks"),
        ("negation", lambda a: a[:, 1:].copy(), "no table 'negation'"),
        ("weights", lambda a: a[:, None].copy(), "no table 'weights'"),
    ):
        save_file({**content, name: change(content.get(name))}, path)
        with pytest.raises(BitextmineError, match=message):
            Networks.read(path)


@pytest.mark.parametrize(
    ("name", "what"), [("names", "pieces"), ("weights", "pieces"), ("directions", "dimensions")]
)
def test_tables_of_another_encoder_are_refused(name, what):
    tools = Tools(Request(("quality",)), load_encoder("europe5"))
    tables = vars(Networks.read(shipped_folder("europe5") / QUALITY))
    tools.quality = Quality(tools.encoder, tables | {name: tables[name][..., 1:]})
    with pytest.raises(BitextmineError, match=f"{name} of .* {what}, but the encoder has"):
        PairTexts(["We met Kowalski."], ["Wir trafen Lindgren."], tools).piece_inputs()


def test_similarity_is_the_better_of_cosine_and_margin():
    cosine = np.array([0.9, 0.4, 0.4, -0.3, 0.0])
    ratio = np.array([1.0, 1.5, 9.0, -2.0, 1.0])
    assert similarity(cosine, ratio) == pytest.approx([0.9, 0.8, 0.86, 0, 0.5])
    assert similarity(cosine) == pytest.approx([0.9, 0.4, 0.4, 0, 0])


def test_a_pair_with_nothing_around_it_is_judged_by_its_cosine():
    rng = np.random.default_rng(3)
    for n, by_margin in ((LEAST_AROUND - 1, False), (LEAST_AROUND, True)):
        src, tgt = [f"s{i}" for i in range(n)], [f"t{i}" for i in range(n)]
        vectors = Vectors(dict(zip(src + tgt, unit(rng, 2 * n), strict=True)))
        tools = Tools(Request(("quality",), margin="distance", window=100), vectors)
        pairs = PairTexts(src, tgt, tools)
        around = pairs.around
        ratio = pairs.column("cosine") / np.maximum((around.src + around.tgt) / 2, 0.01)
        assert pairs.column("margin") == pytest.approx(pairs.column("cosine") - (around.src + around.tgt) / 2)
        similar = similarity(pairs.column("cosine"), ratio if by_margin else None)
        inputs = pairs.inputs()
        assert inputs[:, 0] == pytest.approx(similar)
        wanted = logistic(Networks.read(shipped_folder("default") / QUALITY).plain, inputs)
        assert pairs.column("quality") == pytest.approx(wanted, abs=1e-6)


class Vectors:
    """An encoder whose vectors are given."""

    hash, languages = "0" * 16, ()

    def __init__(self, vectors):
        self.vectors = vectors

    def encode(self, lines, *, batch_tokens=None):
        return (
            np.stack([self.vectors[line] for line in lines]) if len(lines) else np.zeros((0, 8), np.float32)
        )


def unit(rng, n, d=8):
    x = rng.standard_normal((n, d)).astype(np.float32)
    return x / np.linalg.norm(x, axis=1, keepdims=True)


def mean_of_best(query, pool, k):
    return float(np.mean(sorted((float(query @ row) for row in pool), reverse=True)[:k]))


@pytest.mark.parametrize(
    ("n", "window", "k"), [(30, 10, 4), (35, 10, 4), (7, 10, 4), (3, 10, 4), (21, 20, 1)]
)
def test_window_margins_are_the_oracle(n, window, k):
    rng = np.random.default_rng(n)
    src, tgt = [f"s{i}" for i in range(n)], [f"t{i}" for i in range(n)]
    if n > 6:
        src[5], tgt[6] = src[4], tgt[2]  # repeated lines count once
        tgt[0] = src[3]  # and copies not at all
    vectors = dict(zip(src + tgt, unit(rng, 2 * n), strict=True))
    tools = Tools(Request(("margin",), k=k, window=window), Vectors(vectors))
    got = np.concatenate(
        [
            PairTexts(src[i : i + window], tgt[i : i + window], tools).column("margin")
            for i in range(0, n, window)
        ]
    )
    for i in range(n):
        stop = min(n, i // window * window + window)
        start = max(0, stop - window)
        copies = set(src[start:stop]) & set(tgt[start:stop])
        pool_tgt = [vectors[t] for t in dict.fromkeys(tgt[start:stop]) if t not in copies]
        pool_src = [vectors[s] for s in dict.fromkeys(src[start:stop]) if s not in copies]
        cosine = float(vectors[src[i]] @ vectors[tgt[i]])
        around = (mean_of_best(vectors[src[i]], pool_tgt, k) + mean_of_best(vectors[tgt[i]], pool_src, k)) / 2
        assert got[i] == pytest.approx(cosine / max(around, 0.01), abs=1e-5)


def test_all_columns_of_odd_pairs_are_in_their_range(tiny_model):
    pytest.importorskip("py3langid")
    odd = ["", " ", "\x00", "a", "12", "💥" * 50, "\u202eabc", "x\u2028y", "ﬁ½", "\ud800", "۳", "A" * 20_000]
    src, tgt = zip(*[(s, t) for s in odd for t in odd], strict=True)
    request = Request(tuple(COLUMNS), ("en", "fr"), second=True).checked()
    pairs = PairTexts(src, tgt, Tools(request, load_encoder(tiny_model), load_encoder("europe5")))
    for name, column in COLUMNS.items():
        values = pairs.column(name)
        assert len(values) == len(src)
        if column.is_text:
            assert all(isinstance(value, str) and "\t" not in value for value in values)
            continue
        assert not np.isnan(values).any(), name
        if name in ("numbers", "copy", "lang", "quality", "letters", "loops"):
            assert ((values >= 0) & (values <= 1)).all(), name


@pytest.mark.parametrize("threads", [1, 2])
def test_a_second_encoder_has_columns_of_its_own_and_a_say_in_quality(
    tiny_model, parallel_text, tmp_path, threads
):
    """Its columns are those of the same pairs scored by it alone, in blocks of a window."""
    rows = parallel_text(tmp_path, 150)
    options = {"window": 60, "threads": threads, "device": "cpu"}
    alone = [
        score(rows, columns="cosine,margin,quality", model=model, **options)
        for model in (tiny_model, SHIPPED[0])
    ]
    both = score(rows, model=tiny_model, second=SHIPPED[0], **options)
    assert list(both)[:5] == ["cosine", "margin", "cosine2", "margin2", "length_ratio"]
    for name, column in (("cosine", alone[0]["cosine"]), ("cosine2", alone[1]["cosine"])):
        assert np.array_equal(both[name], column)
    assert np.array_equal(both["margin"], alone[0]["margin"])
    assert np.array_equal(both["margin2"], alone[1]["margin"])
    odds = sum(np.log(some["quality"] / (1 - some["quality"])) for some in alone) / 2
    assert np.allclose(both["quality"], 1 / (1 + np.exp(-odds)), atol=1e-9)
    only = score(rows, columns="cosine2", model=tiny_model, second=SHIPPED[0], **options)
    assert np.array_equal(only["cosine2"], both["cosine2"])


def test_columns_of_a_second_encoder_need_one():
    with pytest.raises(UsageError, match="cosine2 needs a second encoder"):
        score([("a", "b")], columns="cosine2")
