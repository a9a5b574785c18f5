"""Adapt an encoder end to end: mine, train, measure, and repeat while it helps."""

import hashlib
import itertools
import json
import logging
import os
import shutil
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from bitextmine.adaptation.held_out import DRAWS, MOST, Measured, choose_held_out, is_better, measure
from bitextmine.adaptation.options import AdaptOptions
from bitextmine.adaptation.piles import TooSmall, check_piles, mine_piles, names_of, piles_of, round_recipe
from bitextmine.console import counted, markdown
from bitextmine.declarations import keywords
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import open_embedding
from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder import folder as files
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import cannot_write, replacing
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.journal import Journal, read_head
from bitextmine.mining.dedup import line_key
from bitextmine.mining.texts import Pair, text_of
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature
from bitextmine.training.recipe import start_name
from bitextmine.training.trainer import CARD, RECIPE, train

log = logging.getLogger(__name__)

LOG = "adapt.jsonl"
# Columns of the card's table: keys of adapt.jsonl, and their headings.
COLUMNS = {
    "round": "round",
    "pairs": "pairs mined",
    "estimated_precision": "of these right, estimated",
    "precision_interval": "95% interval",
    "p_at_1": "P@1 on pairs held out",
    "p_at_1_half": "with half of their words",
}
# Fewer are not enough to learn from, or to measure by.
FEWEST_PAIRS, FEWEST_HELD_OUT = 200, 50


@dataclass(frozen=True)
class Adapted:
    """The model's folder, the round it comes from, and the entries of adapt.jsonl."""

    folder: Path
    best: int
    rounds: tuple[dict[str, Any], ...] = field(repr=False)


@keywords
def adapt(
    corpora: Sequence[tuple[str | os.PathLike[str], str | os.PathLike[str]]],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "auto",
    options: AdaptOptions,
    run: Run,
) -> Adapted:
    """Adapt an encoder to text, without known pairs; the same call resumes an interrupted run.

    Args:
        corpora: pairs of paths, (source, target), whose names tell their languages (news.en, news.de.gz).
        out: the model folder to make.
        model: the encoder to start from, made by `bitextmine train` or packaged.
        options: or its fields, such as ``error_rate`` and ``rounds``.
        run: or its fields, such as ``device``.

    Raises:
        BitextmineError: a corpus or encoder cannot be used, or no round is better: no model is written then.
        UsageError: a value has the wrong type or is out of range.
    """
    pairs = []
    if isinstance(corpora, (str, os.PathLike)) or not isinstance(corpora, Iterable):
        raise UsageError(f"corpora: expected pairs of paths, found {corpora!r}")
    for number, pair in enumerate(corpora, 1):
        if not isinstance(pair, (tuple, list)) or len(pair) != 2:
            raise UsageError(f"corpora: pair {number}: expected two paths, found {pair!r}")
        src, tgt = (text_of(path, name, None, run) for path, name in zip(pair, ("src", "tgt"), strict=True))
        if src.source is None or tgt.source is None:
            raise UsageError(f"corpora: pair {number}: expected the paths of two corpora, found lines")
        pairs.append((src, tgt))
    return Adaptation(piles_of(pairs), Path(out), options, run, model).adapt()


class Adaptation:
    """The making of the model folder ``out`` from ``model``, trained on pairs that it mines in the piles.

    A round mines the piles, trains the first encoder on the pairs that the error rate allows, and searches for
    held-out pairs (`held_out`); rounds go on while these are found better. Each finished step is a record of the
    journal in ``out/work``, which a resumed run does not repeat.
    """

    journal: Journal

    def __init__(
        self, piles: Sequence[Pair], out: Path, options: AdaptOptions, run: Run, model: str | os.PathLike[str]
    ) -> None:
        self.piles, self.out, self.options, self.run = piles, out, options, run
        model = choose_model(model, [text.lang for pair in piles for text in pair])
        self.start, self.folder, self.work = start_name(model), files.resolve(model), out / "work"
        # Refuses encoders of another kind before any work.
        self.training = round_recipe(self.start, self.work, [("pairs.tsv", ("en", "fr"))], 1, options).train
        self.texts = list(dict.fromkeys(itertools.chain.from_iterable(piles)))
        self.rounds: list[dict[str, Any]] = []

    def adapt(self) -> Adapted:
        """Run all rounds and write the model; BitextmineError, and only the log, if no round is better."""
        try:
            with self._claimed() as self.journal:
                try:
                    best = self._rounds()
                    if best:
                        self._write_model(best)
                except TooSmall:
                    shutil.rmtree(self.work)
                    raise
                shutil.rmtree(self.work)
        except OSError as e:
            raise cannot_write(e, self.out) from e
        if not best:
            raise BitextmineError(self._not_better())
        return Adapted(self.out, best, tuple(self.rounds))

    # --- the journal -----------------------------------------------------------------------------------------

    def _claimed(self) -> Journal:
        """Return the journal of the output folder, which is new or from the same adaptation."""
        if self.out.exists() and not self.out.is_dir():
            raise BitextmineError(f"{self.out}: a file is there; name a folder for the encoder")
        for pair in self.piles:
            check_piles(pair)
        path = self.work / "journal"
        identity = {"digest": self._digest()}
        head = read_head(path)
        if head is None:
            begun = [path for folder in (self.out, self.work) if folder.is_dir() for path in folder.iterdir()]
            if not {*begun} <= {self.work, path, self.out / LOG}:
                raise BitextmineError(
                    f"{self.out}: the folder is not empty; name another one for the encoder"
                )
        elif head.identity == identity:
            log.info("%s: resuming", self.work)
        else:
            raise BitextmineError(
                f"{self.work}: from an adaptation of other corpora, another encoder or other options; name another "
                "--out, or remove it"
            )
        self.work.mkdir(parents=True, exist_ok=True)
        return Journal(path, "adapt", identity)

    def _digest(self) -> str:
        """Identify everything that a run depends on."""
        how = f"{asdict(self.options)} {DRAWS} {asdict(self.training)}"
        digest = hashlib.sha256(f"{files.folder_hash(self.folder)} {how}".encode())
        for text in self.texts:
            digest.update(f"{text.lang} {text.sha256}".encode())
        sides = [tuple(map(self.texts.index, pair)) for pair in self.piles]
        digest.update(repr(sides).encode())
        return digest.hexdigest()[:16]

    def _record(self, step: str, number: int = 0) -> dict[str, Any] | None:
        return next(
            (record for record in self.journal if (record["step"], record["round"]) == (step, number)), None
        )

    def _once(self, step: str, number: int, make: Callable[[int], dict[str, Any]]) -> dict[str, Any]:
        """Return the record of a step, made now if the journal does not have it."""
        record = self._record(step, number)
        if record is None:
            record = {"step": step, "round": number, **make(number)}
            self.journal.append(record, sync=True)
        return record

    # --- rounds ----------------------------------------------------------------------------------------------

    def _rounds(self) -> int:
        """Run all rounds; return the number of the best, 0 if none is better than the first encoder."""
        best, old = 0, self._first_round()
        for number in range(1, self.options.rounds + 1):
            self._train(number)
            record = self._once("measured", number, self._measure)
            new = _measured(record)
            entry = {"round": number, **record["entry"], "better": is_better(new, old)}
            if not entry["better"]:
                self._say(entry)
                break
            best, old = number, new
            pairs = 0
            if number < self.options.rounds:
                mined = self._once("mined", number, self._mine)
                pairs = sum(mined["written"])
                entry |= mined["entry"]
            self._say(entry)
            if pairs < FEWEST_PAIRS:
                break
        return best

    def _first_round(self) -> Measured:
        """Mine and measure with the first encoder; TooSmall if there is too little to learn from or measure by."""
        mined = self._once("mined", 0, self._mine)
        entry = {"round": 0, **mined["entry"]}
        written, certain = sum(mined["written"]), sum(len(src) for src, _ in self._held_out())
        if written < FEWEST_PAIRS or certain < FEWEST_HELD_OUT:
            self._say(entry)
            raise TooSmall(
                f"{names_of(self.piles)}: {counted(written, 'pair')} to train on at an error rate of "
                f"{self.options.error_rate:g}, {counted(certain, 'pair')} certain enough to be held out: too few to "
                "learn from, as these corpora are too small, hold few translations of each other, or translations that "
                f"{self.folder.name} does not find. Keep that encoder for them; no model is written"
            )
        record = self._once("measured", 0, self._measure)
        self._say(entry | record["entry"])
        return _measured(record)

    def _held_out(self) -> list[Any]:
        record = self._record("held out")
        assert record is not None
        return list(record["pairs"])

    def _train(self, number: int) -> None:
        """Train the encoder of a round on the pairs of the one before."""
        folder = self._encoder_folder(number)
        if (folder / files.CONFIG).exists():
            return
        before = f"round-{number - 1}"
        counts = self._once("mined", number - 1, self._mine)["written"]
        corpora = [
            (f"{before}/{self._name(i)}", (src.lang, tgt.lang))
            for i, ((src, tgt), count) in enumerate(zip(self.piles, counts, strict=True))
            if count
        ]
        recipe = round_recipe(self.start, self.work, corpora, sum(counts), self.options)
        train(recipe, folder, Run(device=self.run.device))

    # --- mining ----------------------------------------------------------------------------------------------

    def _mine(self, number: int) -> dict[str, Any]:
        """Mine with the encoder of a round, and write the pairs that the next one trains on, none of them held out."""
        folder = self.work / f"round-{number}"
        folder.mkdir(exist_ok=True)
        encoder = load_encoder(self._encoder_folder(number), self.run.device)
        how = (encoder, self.options, self.run)
        mined_piles = [mine_piles(pair, self._embedded(pair, encoder), *how) for pair in self.piles]

        def hold_out(_: int) -> dict[str, Any]:
            chosen = []
            for pair, mined in zip(self.piles, mined_piles, strict=True):
                sources = list(pair[0].take(mined.src))
                at = choose_held_out(mined, sources, self.options.error_rate, MOST // len(self.piles))
                chosen.append([mined.src[at].tolist(), mined.tgt[at].tolist()])
            return {"pairs": chosen}

        chosen = self._once("held out", 0, hold_out)["pairs"]
        held_out = {
            line_key(line)
            for pile, pairs in zip(self.piles, chosen, strict=True)
            for text, lines in zip(pile, pairs, strict=True)
            for line in text.take(np.array(lines, dtype=np.int64))
        }
        written = []
        for i, ((src, tgt), mined) in enumerate(zip(self.piles, mined_piles, strict=True)):
            rows = [
                f"{one_cell(line)}\t{one_cell(other)}\n"
                for line, other in zip(src.take(mined.src), tgt.take(mined.tgt), strict=True)
                if line_key(line) not in held_out and line_key(other) not in held_out
            ]
            with replacing(folder / self._name(i)) as file:
                file.write("".join(rows).encode("utf-8", "replace"))
            written.append(len(rows))
        sizes = np.array([len(mined) for mined in mined_piles])
        estimates = [(mined.precision[-1] if len(mined) else 0, *mined.interval) for mined in mined_piles]
        shares = 100 * np.average(estimates, axis=0, weights=np.maximum(sizes, 1e-9))
        precision, *interval = shares.round(2).tolist()
        entry = {"pairs": int(sizes.sum()), "estimated_precision": precision, "precision_interval": interval}
        return {"entry": entry, "written": written}

    # --- measuring -------------------------------------------------------------------------------------------

    def _measure(self, number: int) -> dict[str, Any]:
        """Search for the held-out pairs with the encoder of a round."""
        encoder = load_encoder(self._encoder_folder(number), self.run.device)
        parts: list[Measured] = []
        for i, pair in enumerate(self.piles):
            src, tgt = (open_embedding(npy)[0] for npy in self._embedded(pair, encoder).values())
            lines = [np.array(side, dtype=np.int64) for side in self._held_out()[i]]
            if len(lines[0]):
                texts = [list(text.take(at)) for text, at in zip(pair, lines, strict=True)]
                parts.append(measure(encoder, texts, lines, (src, tgt), self.options.seed))
        measured = Measured(
            *(np.concatenate([getattr(part, name) for part in parts]) for name in ("whole", "half"))
        )
        whole, half = (round(share, 2) for share in measured.percent())
        entry = {"held_out_pairs": len(measured.whole) // 2, "p_at_1": whole, "p_at_1_half": half}
        return {"entry": entry, "whole": measured.whole.astype(int).tolist(), "half": measured.half.tolist()}

    # --- the result ------------------------------------------------------------------------------------------

    def _write_model(self, best: int) -> None:
        """Write the best encoder into the output folder, config.json last."""
        folder = self._encoder_folder(best)
        # The scorer is the first encoder's: its probabilities still hold (train/quality.md).
        scorer = self.folder / files.SCORER
        names = (files.WEIGHTS, files.TOKENIZER, files.NGRAMS, RECIPE, files.CONFIG)
        content = {CARD: self._card(best, scorer.exists()).encode("utf-8", "replace")}
        for path in (scorer, *(folder / name for name in names)):
            if path.exists():
                content[path.name] = path.read_bytes()
        for name, data in content.items():
            with replacing(self.out / name) as file:
                file.write(data)
        log.info("%s: the encoder of round %d", self.out, best)

    def _card(self, best: int, scorer: bool) -> str:
        """Return the model card as Markdown: origin of the encoder, figures of each round, signature."""
        config, _ = files.read_folder(self._encoder_folder(best))
        name, digest = self.folder.name, files.folder_hash(self.folder)
        o = self.options
        made = signature(
            model=digest, corpora=len(self.piles), error_rate=o.error_rate, seed=o.seed, round=best
        )
        rows = [[_cell(entry.get(key, "")) for key in COLUMNS] for entry in self.rounds]
        scored = f" `scorer.safetensors` is that of {name}, which was not fitted again." if scorer else ""
        lines = [
            f"# A bitextmine encoder for {', '.join(config.languages)}, adapted\n",
            f"{name} (hash {digest}), trained further by `bitextmine adapt` on the pairs that it finds in plain text: "
            f"{names_of(self.piles)}. No known pairs were used; the estimates are the encoder's own. This "
            f"is the encoder of round {best}; round 0 is {name}.{scored}\n",
            markdown(list(COLUMNS.values()), rows),
            "\nFigures are in %. `adapt.jsonl` has them all, `recipe.json` how a round trains.\n",
            f"Signature: `{made}`\n",
        ]
        return "\n".join(lines)

    def _not_better(self) -> str:
        before, after = self.rounds[:2]
        figures = [f"{COLUMNS[key]} {before[key]}, then {after[key]}" for key in ("p_at_1_half", "p_at_1")]
        return (
            f"{self.folder.name} is kept: training on the pairs mined here did not measurably improve it. "
            f"Its gain on the {before['held_out_pairs']:,} held-out pairs is no more than chance, or it lost whole "
            f"sentences ({'; '.join(figures)}); no model is written, {self.out / LOG} has the figures"
        )

    def _say(self, entry: dict[str, Any]) -> None:
        """Add a round to adapt.jsonl and to the log."""
        self.rounds = [*self.rounds[: entry["round"]], entry]
        with replacing(self.out / LOG) as file:
            file.write("".join(f"{json.dumps(record)}\n" for record in self.rounds).encode())
        names = COLUMNS | {"better": "better"}
        figures = [f"{name} {_cell(entry[key])}" for key, name in names.items() if key in entry]
        log.info("%s", "; ".join(figures))

    # --- parts -----------------------------------------------------------------------------------------------

    def _name(self, pile: int) -> str:
        return f"{pile}.{'-'.join(text.lang for text in self.piles[pile])}.tsv"

    def _encoder_folder(self, number: int) -> Path:
        return self.work / f"round-{number}" / "encoder" if number else self.folder

    def _embedded(self, piles: Pair, encoder: Encoder) -> dict[Corpus, Path]:
        """Embed both sides into the work folder; embeddings beside the corpora stay."""
        folder = self.work / "embeddings"
        folder.mkdir(exist_ok=True)
        embedded = {}
        for text in piles:
            options = EmbedOptions(out=folder / f"{self.texts.index(text)}.{text.lang}.npy")
            embedded[text] = embed_corpus(text, encoder, self.run, options)
        return embedded


def _measured(record: dict[str, Any]) -> Measured:
    return Measured(np.array(record["whole"], dtype=bool), np.array(record["half"], dtype=np.int64))


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)
