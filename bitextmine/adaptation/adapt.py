"""Adapt an encoder end to end: mine, train, measure, and repeat while it helps."""

import hashlib
import json
import logging
import math
import os
import shutil
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bitextmine.adaptation.held_out import DRAWS, Measured, MinedPairs, choose_held_out, is_better, measure
from bitextmine.adaptation.options import AdaptOptions
from bitextmine.console import counted, markdown
from bitextmine.declarations import keywords
from bitextmine.embeddings.embed import embed_corpus
from bitextmine.embeddings.options import EmbedOptions
from bitextmine.embeddings.store import open_embedding
from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder import folder as files
from bitextmine.encoder.pieces import PieceRows
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.atomic import cannot_write, replacing
from bitextmine.files.corpus import Corpus
from bitextmine.files.formats.blocks import one_cell
from bitextmine.files.journal import Journal, read_head
from bitextmine.mining.dedup import line_key, unique_lines
from bitextmine.mining.mine import mine_all
from bitextmine.mining.noise import MIN_LINES
from bitextmine.mining.options import MiningOptions
from bitextmine.mining.texts import Pair, text_of
from bitextmine.mining.threshold import NoEstimate
from bitextmine.run import Run
from bitextmine.shipped import choose_model
from bitextmine.signature import signature
from bitextmine.training import recipe as recipes
from bitextmine.training.job import CARD, RECIPE, train

log = logging.getLogger(__name__)

LOG = "adapt.jsonl"
# Columns of the card's table: keys of adapt.jsonl, and their headings.
COLUMNS = {
    "round": "round",
    "pairs": "pairs mined",
    "estimated_precision": "estimated precision",
    "precision_interval": "95% interval",
    "p_at_1": "P@1 on held-out pairs",
    "p_at_1_half": "P@1 with half of their words",
}
# Fewer are not enough to learn from, or to measure by.
FEWEST_PAIRS, FEWEST_HELD_OUT = 200, 50
# Chosen on the even rows of Europarl, for an encoder that had seen none of it. Piece dropout and a
# margin make the pairs harder: the encoder finds them already.
BATCH, EPOCHS = 2048, 24
FEWEST_STEPS, MOST_STEPS = 40, 2000
TRAINING: dict[str, Any] = {
    "batch": BATCH,
    "piece_dropout": 0.2,
    "margin": 0.1,
    "embedding_learning_rate": 2e-3,
}


class TooSmall(BitextmineError):
    """Corpora with too little to learn from."""


@dataclass(frozen=True)
class Adapted:
    """The model's folder, the round it comes from, and the entries of adapt.jsonl."""

    folder: Path
    best: int
    rounds: tuple[dict[str, Any], ...] = field(repr=False)


@keywords
def adapt(
    src: str | os.PathLike[str],
    tgt: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = "auto",
    options: AdaptOptions,
    run: Run,
) -> Adapted:
    """Adapt an encoder to text, without known pairs; the same call resumes an interrupted run.

    Args:
        src: the path of a corpus, whose name tells its language (news.en, news.de.gz).
        tgt: that of a corpus in another language.
        out: the model folder to make.
        model: the encoder to start from, made by `bitextmine train` or packaged.
        options: or its fields, such as ``error_rate`` and ``rounds``.
        run: or its fields, such as ``device``.

    Raises:
        BitextmineError: a corpus or encoder cannot be used, or no round is better: no model is written then.
        UsageError: a value has the wrong type or is out of range.
    """
    texts = text_of(src, "src", None, run, option=""), text_of(tgt, "tgt", None, run, option="")
    return Adaptation(texts, Path(out), options, run, model).adapt()


class Adaptation:
    """The making of the model folder ``out`` from ``model``, trained on pairs that it mines in two corpora.

    A round mines them, trains the first encoder on the pairs that the error rate allows, and searches for held-out
    pairs (`held_out`); rounds go on while these are found better. Each finished step is a record of the journal in
    ``out/work``, which a resumed run does not repeat.
    """

    journal: Journal

    def __init__(
        self, texts: Pair, out: Path, options: AdaptOptions, run: Run, model: str | os.PathLike[str]
    ) -> None:
        self.texts, self.out, self.options, self.run = texts, out, options, run
        self.names = " x ".join(text.name for text in texts)
        _check_texts(*texts)
        self.pairs_name = f"pairs.{texts[0].lang}-{texts[1].lang}.tsv"
        model = choose_model(model, [text.lang for text in texts])
        self.start, self.folder, self.work = recipes.start_name(model), files.resolve(model), out / "work"
        # Refuses encoders of another kind before any work.
        self.training = self._recipe(1, 1).train
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

    def _claimed(self) -> Journal:
        """Return the journal of the output folder, which is new or from the same adaptation."""
        if self.out.exists() and not self.out.is_dir():
            raise BitextmineError(f"{self.out}: a file is there; name a folder for the encoder")
        for text in self.texts:
            lines = len(unique_lines(text.lines()).rows)
            if lines < MIN_LINES:
                raise TooSmall(
                    f"{self.names}: {text.name} has {counted(lines, 'different line')}, too few to tell pairs from "
                    f"noise: adapting needs {MIN_LINES} of each corpus, and thousands to learn anything; keep the "
                    "encoder that you have"
                )
        path = self.work / "journal"
        identity = {"digest": self._digest()}
        head = read_head(path)
        if head is None or head.job != "adapt":
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
                pairs = mined["written"]
                entry |= mined["entry"]
            self._say(entry)
            if pairs < FEWEST_PAIRS:
                break
        return best

    def _first_round(self) -> Measured:
        """Mine and measure with the first encoder; TooSmall if there is too little to learn from or measure by."""
        mined = self._once("mined", 0, self._mine)
        entry = {"round": 0, **mined["entry"]}
        written, certain = mined["written"], len(self._held_out()[0])
        if written < FEWEST_PAIRS or certain < FEWEST_HELD_OUT:
            self._say(entry)
            raise TooSmall(
                f"{self.names}: {counted(written, 'pair')} to train on at an error rate of "
                f"{self.options.error_rate:g}, {counted(certain, 'pair')} certain enough to be held out: too few to "
                "learn from, as these corpora are too small, hold few translations of each other, or translations that "
                f"{self.folder.name} does not find. Keep that encoder for them; no model is written"
            )
        record = self._once("measured", 0, self._measure)
        self._say(entry | record["entry"])
        return _measured(record)

    def _held_out(self) -> list[NDArray[np.int64]]:
        """Return the source and the target lines of the held-out pairs."""
        record = self._record("held out")
        assert record is not None
        return [np.array(lines, dtype=np.int64) for lines in record["pairs"]]

    def _train(self, number: int) -> None:
        """Train the encoder of a round on the pairs of the one before."""
        folder = self._encoder_folder(number)
        if (folder / files.CONFIG).exists():
            return
        pairs = self._once("mined", number - 1, self._mine)["written"]
        train(self._recipe(number, pairs), folder, Run(device=self.run.device))

    def _recipe(self, number: int, pairs: int) -> recipes.Recipe:
        """Return the recipe of a round, on so many pairs of the one before.

        It starts from the first encoder: errors of a round do not stay in the weights.
        """
        steps = min(MOST_STEPS, max(FEWEST_STEPS, math.ceil(EPOCHS * pairs / BATCH)))
        settings = {**TRAINING, "steps": steps, "seed": self.options.seed}
        langs = self.texts[0].lang, self.texts[1].lang
        corpus = recipes.PairCorpus(langs, f"round-{number - 1}/{self.pairs_name}")
        recipe = recipes.Recipe(
            recipes.Data((corpus,), valid_pairs=0),
            model=recipes.Model(start_from=self.start),
            train=recipes.Training(**settings),
            base=self.work,
        )
        return recipes.check_recipe(recipes.with_start(recipe, {f"train.{name}" for name in settings}))

    def _mine(self, number: int) -> dict[str, Any]:
        """Mine with the encoder of a round, and write the pairs that the next one trains on, none of them held out."""
        folder = self.work / f"round-{number}"
        folder.mkdir(exist_ok=True)
        encoder = load_encoder(self._encoder_folder(number), self.run.device)
        mined = self._mined(encoder)
        src, tgt = self.texts

        def hold_out(_: int) -> dict[str, Any]:
            at = choose_held_out(mined, list(src.take(mined.src)), self.options.error_rate)
            return {"pairs": [mined.src[at].tolist(), mined.tgt[at].tolist()]}

        self._once("held out", 0, hold_out)
        held_out = {
            line_key(line)
            for text, lines in zip(self.texts, self._held_out(), strict=True)
            for line in text.take(lines)
        }
        rows = [
            f"{one_cell(line)}\t{one_cell(other)}\n"
            for line, other in zip(src.take(mined.src), tgt.take(mined.tgt), strict=True)
            if line_key(line) not in held_out and line_key(other) not in held_out
        ]
        with replacing(folder / self.pairs_name) as file:
            file.write("".join(rows).encode("utf-8", "replace"))
        shares = [mined.precision[-1] if len(mined) else 0.0, *mined.interval]
        precision, *interval = (round(float(100 * share), 2) for share in shares)
        entry = {"pairs": len(mined), "estimated_precision": precision, "precision_interval": interval}
        return {"entry": entry, "written": len(rows)}

    def _mined(self, encoder: Encoder) -> MinedPairs:
        """Return the pairs that the error rate allows; none if no threshold has that precision by estimate."""
        rescore = isinstance(encoder.network, PieceRows) or None
        threshold, cache = f"precision={1 - self.options.error_rate:g}", self.work / "embeddings"
        wanted = MiningOptions(threshold=threshold, rescore=rescore, cache=cache)
        try:
            [mined] = mine_all([self.texts], [None], wanted, self.run, model=encoder)
        except NoEstimate:
            nothing = np.zeros(0, dtype=np.int64)
            return MinedPairs(nothing, nothing, np.zeros(0))
        mined.discard_checkpoint()
        assert mined.estimate is not None
        assert mined.threshold is not None
        precision = mined.estimate.precisions()[: len(mined)]
        interval = mined.estimate.precision_interval(mined.threshold)
        return MinedPairs(mined.src_index, mined.tgt_index, precision, interval)

    def _measure(self, number: int) -> dict[str, Any]:
        """Search for the held-out pairs with the encoder of a round."""
        encoder = load_encoder(self._encoder_folder(number), self.run.device)
        # Those of mining with the first encoder are up to date.
        where = EmbedOptions(cache=self.work / "embeddings")
        src, tgt = (open_embedding(embed_corpus(text, encoder, self.run, where))[0] for text in self.texts)
        lines = self._held_out()
        sentences = [list(text.take(at)) for text, at in zip(self.texts, lines, strict=True)]
        measured = measure(encoder, sentences, lines, (src, tgt), self.options.seed)
        whole, half = (round(share, 2) for share in measured.percent())
        entry = {"held_out_pairs": len(measured.whole) // 2, "p_at_1": whole, "p_at_1_half": half}
        return {"entry": entry, "whole": measured.whole.astype(int).tolist(), "half": measured.half.tolist()}

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
        made = signature(model=digest, error_rate=o.error_rate, seed=o.seed, round=best)
        rows = [[_cell(entry.get(key, "")) for key in COLUMNS] for entry in self.rounds]
        scored = f" `scorer.safetensors` is that of {name}, which was not fitted again." if scorer else ""
        lines = [
            f"# A bitextmine encoder for {', '.join(config.languages)}, adapted\n",
            f"{name} (hash {digest}), trained further by `bitextmine adapt` on the pairs that it finds in plain text: "
            f"{self.names}. No known pairs were used; the estimates are the encoder's own. This "
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
        figures = [f"{name}: {_cell(entry[key])}" for key, name in names.items() if key in entry]
        log.info("%s", "; ".join(figures))

    def _encoder_folder(self, number: int) -> Path:
        return self.work / f"round-{number}" / "encoder" if number else self.folder


def _check_texts(src: Corpus, tgt: Corpus) -> None:
    for name, text in (("src", src), ("tgt", tgt)):
        if text.source is None:
            raise UsageError(f"{name}: expected the path of a corpus, found lines")
    if src.lang == tgt.lang:
        raise UsageError(
            f"{src.source} and {tgt.source} are both in '{src.lang}'; adapting needs two languages"
        )


def _measured(record: dict[str, Any]) -> Measured:
    return Measured(np.array(record["whole"], dtype=bool), np.array(record["half"], dtype=np.int64))


def _cell(value: Any) -> str:
    if isinstance(value, list):
        return " to ".join(map(str, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:,}" if isinstance(value, int) else str(value)
