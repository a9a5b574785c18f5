"""Adapting from end to end: mine, train, measure, again, while it helps."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.adaptation.card import adapted_card
from bitextmine.adaptation.held_out import (
    DRAWS,
    MOST,
    Measured,
    choose_held_out,
    found_again,
    is_better,
    measure,
)
from bitextmine.adaptation.mining import MinedPairs, TooSmall, check_lines, gold_shares, mine_piles
from bitextmine.adaptation.options import AdaptOptions
from bitextmine.adaptation.piles import Piles, check_gold
from bitextmine.adaptation.training import round_recipe
from bitextmine.console import counted
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.store import open_embedding
from bitextmine.encoder import load_encoder
from bitextmine.encoder.folder import (
    CONFIG,
    NGRAMS,
    SCORER,
    TOKENIZER,
    WEIGHTS,
    folder_hash,
    read_folder,
    resolve,
)
from bitextmine.errors import BitextmineError
from bitextmine.files.atomic import cannot_write, replacing
from bitextmine.files.cells import one_cell
from bitextmine.files.jsonfile import read_json, write_json
from bitextmine.files.lines import LineHasher
from bitextmine.mining.bitext import PickedLines
from bitextmine.mining.dedup import line_key
from bitextmine.mining.gold import Gold
from bitextmine.mining.options import WorkOptions
from bitextmine.mining.texts import FileText
from bitextmine.run import Run
from bitextmine.training.outputs import CARD, RECIPE
from bitextmine.training.recipe import start_name
from bitextmine.training.trainer import train

if TYPE_CHECKING:
    from bitextmine.encoder import Encoder

__all__ = ["LOG", "Adapted", "adapt_piles"]

log = logging.getLogger(__name__)

LOG = "adapt.jsonl"
# With fewer there is nothing to learn from, or to measure it by.
FEWEST_PAIRS, FEWEST_HELD_OUT = 200, 50


@dataclass(frozen=True)
class Adapted:
    """What adapting made: the model's folder, the round that it is from, and of every round what adapt.jsonl says."""

    folder: Path
    best: int
    rounds: tuple[dict[str, Any], ...] = field(repr=False)


def adapt_piles(
    piles: Sequence[Piles],
    out: str | os.PathLike[str],
    options: AdaptOptions | None = None,
    work: WorkOptions | None = None,
    *,
    model: str | os.PathLike[str] = "default",
    gold: Sequence[Gold] = (),
) -> Adapted:
    """Makes the model folder ``out`` of ``model``, trained on from what it mines in the piles.

    A round mines the piles, trains the first encoder on from the pairs that the error rate allows, and asks for pairs
    that were set aside (`held_out`); rounds go on while that gets better. ``out`` has the encoder of the best round,
    with the scorer of ``model`` where that has one, and adapt.jsonl, a line a round. gold: known pairs for each of the
    piles, whose true figures are then logged, and change nothing. Of work device, memory, batch_tokens, search and
    errors count.

    A run that was killed is taken up where it was by calling this again with the same arguments; ``out/work`` holds
    what it needs for that, and goes at the end. Raises BitextmineError for an encoder that cannot be trained on, for
    piles that are too small or have no pairs, and where no round is better than the encoder that there is: then no
    model is written, and the log stays.
    """
    return _Adaptation(piles, Path(out), options or AdaptOptions(), work or WorkOptions(), model, gold).run()


class _Adaptation:
    """A run, at whatever step it is: each one leaves a file, and is not done again where that file is."""

    def __init__(
        self,
        piles: Sequence[Piles],
        out: Path,
        options: AdaptOptions,
        work: WorkOptions,
        model: str | os.PathLike[str],
        gold: Sequence[Gold],
    ) -> None:
        self.piles, self.out, self.options, self.work, self.gold = piles, out, options, work, gold
        self.start = start_name(model)
        self.folder = resolve(model)
        self.place = out / "work"
        # Refused before any work: an encoder of another kind.
        self.training = round_recipe(self.start, self.place, [("pairs.tsv", ("en", "fr"))], 1, options).train
        self.texts: list[FileText] = []
        for one in piles:
            for text in (one.src, one.tgt):
                if text not in self.texts:
                    self.texts.append(text)
        self.rounds: list[dict[str, Any]] = []

    def run(self) -> Adapted:
        try:
            self._claim()
            try:
                best = self._rounds()
            except TooSmall:
                shutil.rmtree(self.place)
                raise
            self._finish(best)
        except OSError as e:
            raise cannot_write(e, self.out) from e
        return Adapted(self.out, best, tuple(self.rounds))

    def _rounds(self) -> int:
        """All rounds; the number of the best. Raises BitextmineError where none is better than what there is."""
        best = 0
        entry, old = self._round(0, mined=True)
        for number in range(1, self.options.rounds + 1):
            self._train(number)
            entry, new = self._round(number, mined=False)
            entry["better"] = is_better(new, old)
            if not entry["better"]:
                self._say(entry)
                break
            best, old = number, new
            if number < self.options.rounds:
                entry |= self._mined(number)
            self._say(entry)
            if self._written(number) < FEWEST_PAIRS:
                break
        if not best:
            shutil.rmtree(self.place)
            raise BitextmineError(self._not_better())
        return best

    def _not_better(self) -> str:
        """Why the first encoder stays, in words."""
        before, after = self.rounds[:2]
        figures = [
            f"P@1 with half of the words {before['p_at_1_half']:.1f}, then {after['p_at_1_half']:.1f}",
            f"with whole sentences {before['p_at_1']:.1f}, then {after['p_at_1']:.1f}",
        ]
        if gold := before.get("gold_p_at_1"):
            figures.append(
                "by --gold, which decides nothing, "
                + ", ".join(
                    f"{name} {value:.1f}, then {after['gold_p_at_1'][name]:.1f}"
                    for name, value in gold.items()
                )
            )
        return (
            f"{self.folder.name} stays: trained on what it finds in these corpora, it was not shown to be better. Its "
            f"gain on the {before['held_out_pairs']:,} pairs held out is no more than chance, or it lost whole "
            f"sentences ({'; '.join(figures)}); no model is written, {self.out / LOG} has the figures"
        )

    def _round(self, number: int, *, mined: bool) -> tuple[dict[str, Any], Measured]:
        """What the log says of a round, as far as it is known."""
        entry: dict[str, Any] = {"round": number}
        if mined:
            entry |= self._mined(number)
            self._check_enough(entry)
        measured, figures = self._measured(number)
        entry |= figures
        if mined:
            self._say(entry)
        return entry, measured

    def _check_enough(self, entry: dict[str, Any]) -> None:
        """Ends the run where there is nothing to learn from, or nothing to measure it by."""
        if (count := self._written(0)) < FEWEST_PAIRS:
            what = f"{counted(count, 'pair')} to train on at an error rate of {self.options.error_rate:g}"
        elif (count := self._held_out_count()) < FEWEST_HELD_OUT:
            what = f"{counted(count, 'pair')} sure enough to be held out and measured by"
        else:
            return
        self._say(entry)
        raise TooSmall(
            f"{'; '.join(map(str, self.piles))}: {what}, too few to learn from: these corpora are too small, hardly "
            f"hold translations of each other, or hold some that {self.folder.name} does not find. It stays the "
            "encoder for them; no model is written"
        )

    def _held_out_count(self) -> int:
        return sum(len(src) for src, _ in read_json(self.place / "held-out.json")["pairs"])

    # --- steps ------------------------------------------------------------------------------------------------

    def _claim(self) -> None:
        """Takes the output folder, or takes it up again."""
        if self.out.exists() and not self.out.is_dir():
            raise BitextmineError(f"{self.out}: a file is there; name a folder for the encoder")
        note = self.place / "adapt.json"
        digest = self._digest(self._read_texts())
        if note.exists():
            if read_json(note).get("digest") == digest:
                log.info("%s: going on with what is there", self.place)
                return
            if any(self.place.glob("round-*/mined.json")):
                raise BitextmineError(
                    f"{self.place}: of an adaptation of other corpora, another encoder or other options; name another "
                    "--out, or remove it"
                )
            # Ended before anything was mined. What is embedded is known by its text.
            shutil.rmtree(self.place / "round-0", ignore_errors=True)
        else:
            # Nothing but what a run leaves that was killed before its note, or found nothing to learn.
            begun = [
                path for folder in (self.out, self.place) if folder.is_dir() for path in folder.iterdir()
            ]
            if any(path != self.place and path.name not in (LOG, ".adapt.json.tmp") for path in begun):
                raise BitextmineError(
                    f"{self.out}: the folder is not empty; name another one for the encoder"
                )
        self.place.mkdir(parents=True, exist_ok=True)
        write_json(note, {"kind": "bitextmine-adapt", "digest": digest})

    def _read_texts(self) -> list[str]:
        """The digests of the corpora's lines. Raises BitextmineError, before any work, for corpora of too few lines and
        for gold of other ones."""
        digests, lines = [], []
        for text in self.texts:
            hasher = LineHasher()
            hasher.update(text.lines())
            digests.append(hasher.hexdigest())
            lines.append(hasher.lines)
        both = [[lines[at] for at in self._sides(one)] for one in self.piles]
        for one, counts in zip(self.piles, both, strict=True):
            check_lines(one, counts)
        for gold, one, counts in zip(self.gold, self.piles, both, strict=False):
            check_gold(gold, one, counts)
        return digests

    def _sides(self, piles: Piles) -> tuple[int, int]:
        """Which of the texts its corpora are."""
        return self.texts.index(piles.src), self.texts.index(piles.tgt)

    def _digest(self, texts: Sequence[str]) -> str:
        """Of all that a run depends on; texts: the digests of the corpora's lines."""
        how = f"{asdict(self.options)} {DRAWS} {asdict(self.training)}"
        digest = hashlib.sha256(f"{folder_hash(self.folder)} {how}".encode())
        for text, lines in zip(self.texts, texts, strict=True):
            digest.update(f"{text.lang} {lines}".encode())
        digest.update(repr([self._sides(one) for one in self.piles]).encode())
        for known in self.gold:
            digest.update(known.src.tobytes() + known.tgt.tobytes())
        return digest.hexdigest()[:16]

    def _train(self, number: int) -> None:
        """The encoder of a round, out of the pairs of the one before."""
        folder = self._encoder_folder(number)
        if (folder / CONFIG).exists():
            return
        before = f"round-{number - 1}"
        counts = read_json(self.place / before / "mined.json")["written"]
        corpora = [
            (f"{before}/{self._name(i)}", one.langs)
            for i, (one, count) in enumerate(zip(self.piles, counts, strict=True))
            if count
        ]
        recipe = round_recipe(self.start, self.place, corpora, sum(counts), self.options)
        train(recipe, folder, Run(device=self.work.device))

    def _mined(self, number: int) -> dict[str, Any]:
        """Mines with the encoder of a round, and writes what the next one trains on."""
        folder = self.place / f"round-{number}"
        done = folder / "mined.json"
        if not done.exists():
            folder.mkdir(exist_ok=True)
            encoder = self._encoder(number)
            found = [
                mine_piles(one, self._embedded(one, encoder), encoder, self.options, self.work)
                for one in self.piles
            ]
            kept = [mined.best(self.options.error_rate) for mined in found]
            held_out = self._held_out_pairs(found)
            written = [
                self._write_pairs(folder / self._name(i), one, mined, count, held_out)
                for i, (one, mined, count) in enumerate(zip(self.piles, found, kept, strict=True))
            ]
            pairs = sum(kept)
            expected = sum(
                float(mined.precision[count - 1]) * count if count else 0.0
                for mined, count in zip(found, kept, strict=True)
            )
            entry: dict[str, Any] = {
                "pairs": pairs,
                "estimated_precision": round(100 * expected / max(1, pairs), 2),
            }
            if self.gold:
                shares = [
                    gold_shares(mined, count, gold)
                    for mined, count, gold in zip(found, kept, self.gold, strict=True)
                ]
                for key in ("precision", "recall"):
                    entry[f"gold_{key}"] = round(float(np.mean([share[key] for share in shares])), 2)
            write_json(done, {"kind": "bitextmine-adapt-mined", "entry": entry, "written": written})
        return dict(read_json(done)["entry"])

    def _written(self, number: int) -> int:
        """How many pairs of a round there are to train on."""
        done = self.place / f"round-{number}" / "mined.json"
        return sum(read_json(done)["written"]) if done.exists() else 0

    def _held_out_pairs(self, found: Sequence[MinedPairs]) -> set[str]:
        """The keys of all sentences that are set aside; chosen now, where this is the first round."""
        path = self.place / "held-out.json"
        if not path.exists():
            chosen = []
            most = MOST // len(self.piles)
            for one, mined in zip(self.piles, found, strict=True):
                best = mined.best(self.options.error_rate)
                sentences = self._sentences(one.src, mined.src[:best])
                at = choose_held_out(mined, sentences, self.options.error_rate, most)
                chosen.append([mined.src[at].tolist(), mined.tgt[at].tolist()])
            write_json(path, {"kind": "bitextmine-adapt-held-out", "pairs": chosen})
        keys = set()
        for one, pairs in zip(self.piles, read_json(path)["pairs"], strict=True):
            for text, lines in zip((one.src, one.tgt), pairs, strict=True):
                keys |= {line_key(line) for line in self._sentences(text, np.array(lines, dtype=np.int64))}
        return keys

    def _write_pairs(self, path: Path, piles: Piles, mined: MinedPairs, kept: int, held_out: set[str]) -> int:
        """Writes the best pairs but for those with a sentence that is set aside; how many there are."""
        src, tgt = self._sentences(piles.src, mined.src[:kept]), self._sentences(piles.tgt, mined.tgt[:kept])
        rows = [
            f"{one_cell(a)}\t{one_cell(b)}\n"
            for a, b in zip(src, tgt, strict=True)
            if line_key(a) not in held_out and line_key(b) not in held_out
        ]
        with replacing(path) as file:
            file.write("".join(rows).encode("utf-8", "replace"))
        return len(rows)

    def _measured(self, number: int) -> tuple[Measured, dict[str, Any]]:
        """Asks the encoder of a round for the pairs set aside, and for gold."""
        path = self.place / f"round-{number}" / "measured.json"
        if not path.exists():
            encoder = self._encoder(number)
            held_out = read_json(self.place / "held-out.json")["pairs"]
            parts, gold = [], []
            for i, one in enumerate(self.piles):
                matrices = [open_embedding(npy)[0] for npy in self._embedded(one, encoder)]
                lines = [np.array(side, dtype=np.int64) for side in held_out[i]]
                if len(lines[0]):
                    texts = [
                        self._sentences(text, at) for text, at in zip((one.src, one.tgt), lines, strict=True)
                    ]
                    parts.append(
                        measure(
                            encoder,
                            (texts[0], texts[1]),
                            (lines[0], lines[1]),
                            (matrices[0], matrices[1]),
                            self.options.seed,
                        )
                    )
                if self.gold:
                    known = (self.gold[i].src, self.gold[i].tgt)
                    for side in (0, 1):
                        queries = matrices[side][known[side]].astype(np.float32)
                        gold.append(
                            100 * float(found_again(queries, known[1 - side], matrices[1 - side]).mean())
                        )
            hits = {
                name: "".join(str(int(count)) for part in parts for count in getattr(part, name))
                for name in ("whole", "half")
            }
            names = [f"{a}-{b}" for one in self.piles for a, b in (one.langs, one.langs[::-1])]
            figures = {
                "gold_p_at_1": {name: round(value, 2) for name, value in zip(names, gold, strict=False)}
            }
            path.parent.mkdir(exist_ok=True)
            write_json(
                path, {"kind": "bitextmine-adapt-measured", **hits, "figures": figures if gold else {}}
            )
        content = read_json(path)
        whole, half = (np.array(list(content[name]), dtype=np.int64) for name in ("whole", "half"))
        measured = Measured(whole.astype(bool), half)
        shares = measured.percent()
        return measured, {
            "held_out_pairs": len(whole) // 2,
            "p_at_1": round(shares[0], 2),
            "p_at_1_half": round(shares[1], 2),
            **content["figures"],
        }

    def _finish(self, best: int) -> None:
        """Puts the best encoder into the output folder, config.json last, and clears up."""
        folder = self._encoder_folder(best)
        names = [WEIGHTS, TOKENIZER, NGRAMS, RECIPE, CONFIG]
        # The scorer is the first encoder's: its probabilities still hold (train/quality.md).
        scorer = self.folder / SCORER
        card = adapted_card(
            read_folder(folder)[0],
            (self.folder.name, folder_hash(self.folder)),
            self.piles,
            self.options,
            self.rounds,
            best,
            scorer=scorer.exists(),
        )
        with replacing(self.out / CARD) as file:
            file.write(card.encode("utf-8", "replace"))
        for path in (scorer, *(folder / name for name in names)):
            if path.exists():
                with replacing(self.out / path.name) as file:
                    file.write(path.read_bytes())
        shutil.rmtree(self.place)
        entry = self.rounds[best]
        log.info(
            "%s: the encoder of round %d: P@1 with half of the words %.1f, %.1f before",
            self.out,
            best,
            entry["p_at_1_half"],
            self.rounds[0]["p_at_1_half"],
        )

    # --- parts ------------------------------------------------------------------------------------------------

    def _name(self, pile: int) -> str:
        return f"{pile}.{'-'.join(self.piles[pile].langs)}.tsv"

    def _encoder_folder(self, number: int) -> Path:
        return self.place / f"round-{number}" / "encoder" if number else self.folder

    def _encoder(self, number: int) -> Encoder:
        return load_encoder(self._encoder_folder(number), self.work.device)

    def _embedded(self, piles: Piles, encoder: Encoder) -> tuple[Path, Path]:
        """The vectors of both sides by that encoder, in the work folder: those beside the corpora stay."""
        folder = self.place / "embeddings"
        folder.mkdir(exist_ok=True)
        found = []
        for text in (piles.src, piles.tgt):
            npy = folder / f"{self.texts.index(text)}.{text.lang}.npy"
            found.append(
                embed_corpus(
                    text.path,
                    encoder,
                    out=npy,
                    lang=text.lang,
                    errors=text.errors,
                    batch_tokens=self.work.batch_tokens,
                )
            )
        return found[0], found[1]

    def _sentences(self, text: FileText, lines: NDArray[np.int64]) -> list[str]:
        with PickedLines(text.lines(), lines) as picked:
            return list(picked.in_order(lines))

    def _say(self, entry: dict[str, Any]) -> None:
        """Adds a round to the log, for programs and for people."""
        self.rounds = [*self.rounds[: entry["round"]], entry]
        with replacing(self.out / LOG) as file:
            file.write("".join(f"{json.dumps(one)}\n" for one in self.rounds).encode())
        said = []
        if "p_at_1" in entry:
            said.append(
                f"P@1 of {counted(entry['held_out_pairs'], 'held-out pair')} {entry['p_at_1']:.1f}, with half of "
                f"their words {entry['p_at_1_half']:.1f}"
            )
        if "better" in entry:
            said.append("better" if entry["better"] else "not better: the round before stays")
        if "pairs" in entry:
            said.append(
                f"{counted(entry['pairs'], 'pair')} mined, an estimated {entry['estimated_precision']:.1f}% right"
            )
        if "gold_p_at_1" in entry:
            said.append(
                "gold: P@1 "
                + ", ".join(f"{name} {value:.1f}" for name, value in entry["gold_p_at_1"].items())
            )
        if "gold_recall" in entry:
            said.append(
                f"{entry['gold_recall']:.1f}% of the gold pairs mined, {entry['gold_precision']:.1f}% of their pairs "
                "right"
            )
        log.info("round %d: %s", entry["round"], "; ".join(said))
