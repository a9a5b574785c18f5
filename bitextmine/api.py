"""What the commands do, as functions: ``import bitextmine`` offers them all, and loads no stage before it is used.

Errors that a caller can put right are `BitextmineError`.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from bitextmine.errors import BitextmineError, UsageError

if TYPE_CHECKING:
    import pandas
    from numpy.typing import ArrayLike

    from bitextmine.encoder import Encoder
    from bitextmine.evaluate.precision import RetrievalReport
    from bitextmine.mine.bitext import Bitext
    from bitextmine.search.exact import Neighbours

__all__ = ["MiningKeywords", "evaluate_retrieval", "knn", "mine", "score"]


class MiningKeywords(TypedDict, total=False):
    """The keywords of `mine`: the fields of `MiningOptions` and of `WorkOptions`, where each is told about."""

    k: int
    margin: str
    retrieval: str
    threshold: float | str | None
    fpr: float
    gold: str | os.PathLike[str] | None
    rescore: bool
    dedup: str
    duplicates: str
    search: str
    device: str
    memory: int | None
    batch_tokens: int | None
    force: bool


def mine(
    src: Iterable[str] | str | os.PathLike[str],
    tgt: Iterable[str] | str | os.PathLike[str],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = "default",
    errors: str = "strict",
    **options: Unpack[MiningKeywords],
) -> Bitext:
    """Find the sentence pairs in two texts, as the command ``mine`` does.

    src, tgt: each the path of a corpus (one sentence per line, plain or .gz, .xz, .zst), or the lines themselves. Lines
    are embedded in memory and leave no file behind. Embeddings of corpora lie beside them, as the command puts them,
    and are taken up again; a long search leaves a checkpoint there, which the result's ``discard_checkpoint()``
    removes.

    src_lang, tgt_lang: codes of the languages, for the signature; of a corpus the suffix of its name tells. model: an
    encoder of `load_encoder`, or what that takes. errors: invalid UTF-8 in a corpus, strict or replace.

    Options (`mine.options.MiningOptions`, `WorkOptions`), with their defaults: k=4 neighbours per line;
    margin="ratio", "distance" or "absolute"; retrieval="max", "matching", "intersect", "union", "forward" or
    "backward"; threshold="auto", "none" or a number; fpr=0.01, the false-positive rate that "auto" aims at; gold=None,
    a file of known pairs for "auto"; rescore=False, whether the score is the scorer's log odds; dedup="exact", "near"
    or "none"; duplicates="first" or "all"; search="auto", "exact" or "index"; device="auto"; memory=None, bytes for
    the search; batch_tokens=None; force=False.

    The result has a length, iterates over pairs (score, src_line, tgt_line, src, tgt; line numbers from 1; best first),
    and has ``to_frame()``, ``write(path)``, ``threshold``, ``signature`` and ``notes``.

    Raises BitextmineError for what the command refuses, TypeError for an unknown option.

    >>> en = ["Good morning.", "The train to Paris leaves at noon.", "I do not eat meat."]
    >>> fr = ["Je ne mange pas de viande.", "Bonjour.", "Le train pour Paris part à midi."]
    >>> found = mine(en, fr, src_lang="en", tgt_lang="fr", threshold="none")
    >>> for pair in sorted(found, key=lambda pair: pair.src_line):
    ...     print(pair.src_line, pair.tgt_line, pair.src, pair.tgt, sep=" | ")
    1 | 2 | Good morning. | Bonjour.
    2 | 3 | The train to Paris leaves at noon. | Le train pour Paris part à midi.
    3 | 1 | I do not eat meat. | Je ne mange pas de viande.
    >>> found.to_frame().columns.tolist()
    ['score', 'src_line', 'tgt_line', 'src', 'tgt']
    """
    from bitextmine.mine.options import split_options
    from bitextmine.mine.run import mine_texts
    from bitextmine.mine.texts import text_of

    mining, work = split_options(options)
    source, target = text_of(src, "src", src_lang, errors), text_of(tgt, "tgt", tgt_lang, errors)
    return mine_texts(source, target, mining, work, model=model)


def score(
    pairs: Iterable[tuple[str, str]] | pandas.DataFrame,
    *,
    columns: str | Sequence[str] | None = None,
    src_lang: str = "",
    tgt_lang: str = "",
    model: str | os.PathLike[str] | Encoder = "default",
    k: int = 4,
    margin: str = "ratio",
    window: int | None = None,
    device: str = "auto",
) -> pandas.DataFrame:
    """The columns that the command ``score`` adds to sentence pairs, a row for each pair: float64, or str for texts.

    pairs: (source, target) tuples, or a frame with the columns src and tgt (as `mine` gives), whose index the result
    has, so that ``frame.join(score(frame))`` puts both side by side.

    columns: their names, in a sequence or between commas; None: cosine, margin, length_ratio, numbers, copy, quality,
    and lang before quality where the languages are given. ``bitextmine score --help`` says what each is. src_lang,
    tgt_lang: the languages that the sides should be in. margin: ratio, distance or absolute, over the `k` nearest
    neighbours among `window` pairs (4,096). model: an encoder of `load_encoder`, or what that takes.

    Raises BitextmineError for columns that there are not, and for a pair that is not two texts.

    >>> frame = score([("Room 12 is free.", "La chambre 12 est libre."), ("Room 7", "Chambre 8")],
    ...               columns="numbers,length_ratio")
    >>> frame.round(2).to_dict("list")
    {'numbers': [1.0, 0.0], 'length_ratio': [1.5, 1.5]}
    """
    import numpy as np
    import pandas

    from bitextmine.clean.columns import COLUMNS, Pairs, Tools
    from bitextmine.clean.columns.neighbourhood import WindowNeighbourhood
    from bitextmine.clean.score import WINDOW, wanted_columns
    from bitextmine.mine.margin import Margin
    from bitextmine.mine.options import member

    names = wanted_columns(columns, bool(src_lang and tgt_lang))
    window = WINDOW if window is None else window
    if k < 1 or window < 1:
        raise UsageError(f"k and the window must be at least 1, found {k} and {window}")
    if bool(src_lang) != bool(tgt_lang):
        raise UsageError("one language alone says nothing: give src_lang and tgt_lang, or neither")
    tools = Tools(
        margin=member(Margin, margin, "margin"), src_lang=src_lang, tgt_lang=tgt_lang, device=device
    )
    needed = [COLUMNS[name] for name in names]
    tools.prepare(needed)
    src, tgt, index = _both_sides(pairs)
    if any(column.encoder for column in needed):
        tools.encoder = _encoder(model, device)
    if any(column.neighbours for column in needed):
        tools.neighbourhood = WindowNeighbourhood(k, window)
    found: dict[str, list[Any]] = {name: [] for name in names}
    for start in range(0, len(src), window):
        part = Pairs(src[start : start + window], tgt[start : start + window], tools)
        for name in names:
            found[name].append(part.column(name))
    return pandas.DataFrame(
        {
            name: [text for part in parts for text in part]
            if COLUMNS[name].is_text
            else np.concatenate([np.empty(0), *parts])
            for name, parts in found.items()
        },
        index=index,
    )


def _both_sides(pairs: Iterable[tuple[str, str]] | pandas.DataFrame) -> tuple[list[str], list[str], Any]:
    """Sources, targets, and the index of the frame that they came in (None without)."""
    rows: list[Any]
    index = None
    frame: Any = pairs
    if hasattr(pairs, "columns"):
        if missing := {"src", "tgt"} - set(frame.columns):
            there = ", ".join(map(str, frame.columns))
            raise BitextmineError(
                f"score: the frame has no column {' or '.join(sorted(missing))}; it has {there}"
            )
        rows, index = list(zip(frame["src"], frame["tgt"], strict=True)), frame.index
    else:
        rows = list(frame)
    for number, row in enumerate(rows, start=1):
        if not isinstance(row, (tuple, list)) or len(row) != 2 or not all(isinstance(x, str) for x in row):
            raise BitextmineError(f"score: pair {number} is {row!r}; a pair is two texts, (source, target)")
    return [src for src, _ in rows], [tgt for _, tgt in rows], index


def knn(x: ArrayLike, y: ArrayLike, k: int, *, device: str = "cpu", memory: int | None = None) -> Neighbours:
    """The k nearest rows of y for each row of x, and of x for each row of y, by inner product: exact, both ways.

    x (n, d), y (m, d): float16 or float32 arrays, memory-mapped ones too; other numbers are made float32. Of rows of
    length 1, as encoders give, the inner product is the cosine. device: cpu, cuda, cuda:N. memory: bytes that the
    search may take (default: half of what is free).

    The result has fwd_sim float32 (n, k), fwd_id int64 (n, k), bwd_sim (m, k), bwd_id (m, k): highest first, equal ones
    by the lower row; where k is more than there are rows, -inf and -1.

    Raises BitextmineError for arrays of other than two dimensions or of different d, k < 1, NaN and infinity, and too
    little memory.

    >>> near = knn([[1, 0], [0, 1], [0.6, 0.8]], [[0.8, 0.6], [0, 1]], k=1)
    >>> near.fwd_id.tolist(), near.bwd_id.tolist()
    ([[0], [1], [0]], [[2], [1]])
    >>> near.fwd_sim.round(2).tolist()
    [[0.800000011920929], [1.0], [0.9599999785423279]]
    """
    import numpy as np

    from bitextmine.search.exact import search_both

    arrays = []
    for rows, name in ((x, "x"), (y, "y")):
        array = np.asanyarray(rows)
        if array.ndim != 2:
            raise BitextmineError(f"knn: {name} has the shape {array.shape}; expected rows of numbers (n, d)")
        arrays.append(array if array.dtype in (np.float16, np.float32) else array.astype(np.float32))
    return search_both(arrays[0], arrays[1], k, device=device, memory=memory)


def evaluate_retrieval(
    queries: Mapping[str, Sequence[str]] | str | os.PathLike[str],
    distractors: Mapping[str, Iterable[str]] | str | os.PathLike[str] | None = None,
    *,
    pairs: str = "all",
    pivot: str | None = "en",
    model: str | os.PathLike[str] | Encoder = "default",
    k: int = 4,
    csls: int = 10,
    candidates: int = 10,
    rescore: bool = False,
    device: str = "auto",
    memory: int | None = None,
) -> RetrievalReport:
    """P@1, how often the best sentence of a pool is the translation: by cosine, ratio margin and CSLS, with 95%
    intervals, as the command ``evaluate retrieval`` does.

    queries: for each language a list of sentences, row i of each a translation of row i of the others; or the TSV file
    of these, with a header of languages. distractors: for each language further sentences for its pool, which translate
    none of the queries; or a folder of ``distractors.LANG.txt`` files. pairs: directions, as "en-fr,fr-en"; "all": to
    and from `pivot` (the first language, where the pivot is none of them). k, csls: neighbours of the ratio margin and
    of CSLS. candidates: nearest by cosine that these choose among. rescore: measure the scorer of `mine` as well.
    model: an encoder of `load_encoder`, or what that takes.

    The report has results (src, tgt, measure, p_at_1, low, high, correct, queries, pool; shares from 0 to 1),
    ``to_frame()``, ``to_dict()``, ``to_table()``, signature and notes. Nothing is left on disk.

    Raises BitextmineError for lists of different lengths, an empty sentence, and a direction that is not there.

    >>> queries = {"en": ["Good morning.", "I do not eat meat."], "fr": ["Bonjour.", "Je ne mange pas de viande."]}
    >>> report = evaluate_retrieval(queries, {"fr": ["Le train pour Paris part à midi."]}, pairs="en-fr")
    >>> report.to_frame()[["measure", "p_at_1", "queries", "pool"]].to_dict("list")
    {'measure': ['cosine', 'ratio-4', 'csls-10'], 'p_at_1': [1.0, 1.0, 1.0], 'queries': [2, 2, 2], 'pool': [3, 3, 3]}
    """
    from bitextmine.evaluate.bench import RankingOptions
    from bitextmine.evaluate.retrieval import evaluate_retrieval as evaluate

    ranking = RankingOptions(k, csls, candidates, rescore)
    return evaluate(
        queries, distractors, ranking, pairs=pairs, pivot=pivot, model=model, device=device, memory=memory
    )


def _encoder(model: str | os.PathLike[str] | Encoder, device: str) -> Encoder:
    from bitextmine.encoder import load_encoder

    return load_encoder(model, device) if isinstance(model, (str, os.PathLike)) else model
