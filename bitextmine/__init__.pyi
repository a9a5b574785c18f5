# Made by tests/stubs.py.
from bitextmine.adaptation.adapt import Adapted
from bitextmine.adaptation.options import AdaptOptions
from bitextmine.alignment.align import Text
from bitextmine.alignment.formats import AlignedDocument
from bitextmine.alignment.options import AlignOptions
from bitextmine.documents.kinds import DocumentFormat
from bitextmine.documents.kinds import SplitOptions
from bitextmine.documents.split import Sentence
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.encoder import load_encoder
from bitextmine.errors import BitextmineError
from bitextmine.errors import UsageError
from bitextmine.evaluation.options import RankingOptions
from bitextmine.evaluation.ranking import RetrievalReport
from bitextmine.evaluation.report import FileName
from bitextmine.evaluation.retrieval import Distractors
from bitextmine.evaluation.sts import StsReport
from bitextmine.executor import Executor
from bitextmine.exporting import export_encoder as export
from bitextmine.files.formats.layout import Columns
from bitextmine.mining.bitext import Bitext
from bitextmine.mining.bitext import MinedPair
from bitextmine.mining.options import Dedup
from bitextmine.mining.options import Duplicates
from bitextmine.mining.options import Margin
from bitextmine.mining.options import MiningOptions
from bitextmine.mining.options import Retrieval
from bitextmine.mining.options import SearchWay
from bitextmine.reporting.page import write_report as report
from bitextmine.run import Run
from bitextmine.scoring.api import FilteredPairs
from bitextmine.scoring.options import FilterOptions
from bitextmine.scoring.options import ScoreOptions
from bitextmine.scoring.rules import RuleSet
from bitextmine.search.neighbours import Neighbours
from bitextmine.training.api import Pairs
from bitextmine.training.options import TrainOptions
from bitextmine.version import __version__
from collections.abc import Iterable
from collections.abc import Iterator
from collections.abc import Mapping
from collections.abc import Sequence
from numpy.typing import ArrayLike
from pathlib import Path
from typing import Any
from typing import Literal
import os
import pandas
__all__ = ['BitextmineError', 'UsageError', '__version__', 'AdaptOptions', 'AlignOptions', 'Bitext', 'Encoder', 'FilterOptions', 'FilteredPairs', 'MiningOptions', 'Neighbours', 'RetrievalReport', 'Run', 'ScoreOptions', 'Sentence', 'SplitOptions', 'StsReport', 'TrainOptions', 'adapt', 'align', 'evaluate_retrieval', 'evaluate_sts', 'export', 'filter', 'knn', 'load_encoder', 'mine', 'report', 'score', 'split', 'train']
def adapt(
    src: str | os.PathLike[str],
    tgt: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    model: str | os.PathLike[str] = 'auto',
    error_rate: float = 0.05,
    rounds: int = 4,
    seed: int = 1,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: AdaptOptions | None = None,
    run: Run | None = None,
) -> Adapted: ...
def align(
    src: Text,
    tgt: Text,
    *,
    documents: bool = False,
    max_size: int = 6,
    presplit: bool = False,
    anchors: bool = False,
    ids: bool = False,
    origin: bool = False,
    normalize: bool = False,
    format: str | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = 'auto',
    second: str | os.PathLike[str] | Encoder | None = None,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: AlignOptions | None = None,
    run: Run | None = None,
) -> AlignedDocument: ...
def evaluate_retrieval(
    queries: FileName | Mapping[str, Sequence[str]],
    distractors: Distractors | None = None,
    *,
    pairs: str = 'all',
    model: FileName | Encoder = 'auto',
    k: int = 4,
    rescore: bool = False,
    second: str | os.PathLike[str] | Encoder | None = None,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: RankingOptions | None = None,
    run: Run | None = None,
) -> RetrievalReport: ...
def evaluate_sts(
    files: FileName | Sequence[FileName],
    *,
    pairs: str | None = None,
    model: FileName | Encoder = 'auto',
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    run: Run | None = None,
) -> StsReport: ...
def filter(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    preset: str | None = None,
    rules: str | os.PathLike[str] | RuleSet | None = None,
    model: str | os.PathLike[str] | Encoder = 'auto',
    min: Mapping[str, float] | None = None,
    max: Mapping[str, float] | None = None,
    equal: Mapping[str, str] | None = None,
    duplicates: str | None = None,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    explain: int = 0,
    columns: str | Sequence[str] | None = None,
    where: Columns = ...,
    src: str = '',
    tgt: str = '',
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: FilterOptions | None = None,
    run: Run | None = None,
) -> FilteredPairs: ...
def knn(
    x: ArrayLike,
    y: ArrayLike,
    k: int,
    *,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    run: Run | None = None,
) -> Neighbours: ...
def mine(
    src: Iterable[str] | str | os.PathLike[str],
    tgt: Iterable[str] | str | os.PathLike[str],
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    model: str | os.PathLike[str] | Encoder = 'auto',
    k: int = 4,
    margin: Margin | Literal['ratio', 'distance', 'absolute'] = 'ratio',
    retrieval: Retrieval | Literal['max', 'matching', 'intersect', 'union', 'forward', 'backward'] = 'max',
    threshold: float | str | None = 'auto',
    gold: str | os.PathLike[str] | None = None,
    rescore: bool | None = None,
    clean: bool = True,
    second: str | os.PathLike[str] | Encoder | None = None,
    second_budget: float | str = 0.1,
    dedup: Dedup | Literal['exact', 'near', 'none'] = 'exact',
    duplicates: Duplicates | Literal['first', 'all'] = 'first',
    search: SearchWay | Literal['auto', 'exact', 'index'] = 'auto',
    cache: str | os.PathLike[str] | None = None,
    force: bool = False,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: MiningOptions | None = None,
    run: Run | None = None,
) -> Bitext: ...
def score(
    pairs: Iterable[tuple[str, str] | MinedPair] | pandas.DataFrame,
    *,
    src_lang: str | None = None,
    tgt_lang: str | None = None,
    columns: str | Sequence[str] | None = None,
    score_only: bool = False,
    src: str = '',
    tgt: str = '',
    where: Columns = ...,
    normalize: bool = False,
    strict: bool = False,
    model: str | os.PathLike[str] | Encoder = 'auto',
    second: str | os.PathLike[str] | Encoder | None = None,
    k: int = 4,
    margin: Margin | Literal['ratio', 'distance', 'absolute'] = 'ratio',
    window: int = 4096,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: ScoreOptions | None = None,
    run: Run | None = None,
) -> pandas.DataFrame: ...
def split(
    inputs: str | os.PathLike[str] | Iterable[str | os.PathLike[str]] = (),
    lang: str | None = None,
    *,
    text: str | Iterable[str] = (),
    langs: Sequence[str] = (),
    by_language: bool = False,
    ids: bool = False,
    join: Literal['sentence', 'paragraph'] = 'sentence',
    normalize: bool = True,
    machine_translated: bool = False,
    kind: DocumentFormat | Literal['text', 'html', 'warc', 'jsonl', 'parquet', 'epub', 'docx', 'odt', 'pdf', 'subtitles'] | None = None,
    text_field: str = 'text',
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: SplitOptions | None = None,
    run: Run | None = None,
) -> Iterator[Sentence]: ...
def train(
    out: str | os.PathLike[str],
    recipe: str | os.PathLike[str] | None = None,
    *,
    force: bool = False,
    pairs: str | os.PathLike[str] | Sequence[Pairs] = (),
    start: str | os.PathLike[str] | None = None,
    settings: Mapping[str, Any] | None = None,
    data: str | os.PathLike[str] | None = None,
    device: str = 'auto',
    memory: int | str | None = None,
    threads: int | None = None,
    executor: Executor | str = ...,
    batch_tokens: int | None = None,
    errors: Literal['strict', 'replace'] = 'strict',
    max_line: int | str = 10485760,
    show_progress: bool | None = None,
    options: TrainOptions | None = None,
    run: Run | None = None,
) -> Path: ...
