"""Plans of corpora: how many lines they have, and what embedding and mining them will take. Nothing is written."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from bitextmine.distributed.options import RayOptions
from bitextmine.distributed.plan import EmbeddingPlan, IndexPlan, Rates, SearchPlan, plan_table, shard_rows
from bitextmine.embeddings.manifest import Manifest, manifest_path, read_manifest
from bitextmine.embeddings.places import place_of
from bitextmine.encoder.encoder import Encoder
from bitextmine.encoder.precomputed import PRECOMPUTED
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.files.storage import place
from bitextmine.files.streams import read_blocks, read_once
from bitextmine.files.urls import is_remote

__all__ = ["plan_embedding", "plan_mining", "rates_of", "text_size"]

# Lines a second that a processor encodes with layers: two of 512 dimensions, 335 by two (index/performance.md).
LAYERS = 168.0

Path = str | os.PathLike[str]


def rates_of(
    encoder: Encoder, assumed: Iterable[tuple[str, float]], cluster: RayOptions | None = None
) -> Rates:
    """The measured rates, for such an encoder, with those that were given in their place. cluster: of which the
    processors of a worker are. Raises UsageError for names and numbers that are none."""
    measured = {"embed": LAYERS} if encoder.network.slow else {}
    given = {} if cluster is None else {"processors": float(cluster.cpus)}
    return Rates().with_given({**measured, **given, **dict(assumed)})


def text_size(path: Path) -> tuple[int, int]:
    """Lines and bytes of a corpus, unpacked. Raises BitextmineError for one that cannot be read, UsageError for a
    pipe."""
    if read_once(path):
        raise UsageError(f"{os.fspath(path)}: a plan counts its lines, and then a pipe is empty; name a file")
    lines = size = 0
    last = b"\n"
    for block in read_blocks(path):
        lines += block.count(b"\n")
        size += len(block)
        last = block[-1:]
    return lines + (last != b"\n"), size


def plan_embedding(
    corpora: Sequence[Path], encoder: Encoder, rates: Rates, cluster: RayOptions | None = None
) -> str:
    """What `embed` will take, as a table; `cluster` says how many lines a shard has. Raises as `text_size` does;
    BitextmineError for a corpus without a line."""
    _check(encoder)
    plans = {place(path).name: _embedding(*_size(path), encoder, rates, cluster) for path in corpora}
    return plan_table(plans, None, rates) + _of_gpus(cluster)


def plan_mining(
    src: Path,
    tgt: Path,
    encoder: Encoder,
    rates: Rates,
    k: int,
    *,
    exact: int | None,
    cache: Path | None = None,
    cluster: RayOptions | None = None,
) -> str:
    """What `mine` will take, as a table. Lines that it will leave out, as repeated ones, are counted too.

    k: neighbours that are looked for. exact: up to how many similarities the search is exact; None: however many.
    cluster: says how many lines a shard has. An embedding that lies there, of as many lines and this model, is taken
    for the one that is wanted.

    Raises as `plan_embedding` does.
    """
    _check(encoder)
    sizes = [_size(path) for path in (src, tgt)]
    missing = {
        place(path).name: _embedding(lines, text, encoder, rates, cluster)
        for path, (lines, text) in zip((src, tgt), sizes, strict=True)
        if cache is not None or not _is_there(path, lines, encoder)
    }
    n, m = sizes[0][0], sizes[1][0]
    search: SearchPlan | IndexPlan
    rows = (None if cluster is None else cluster.rows) or shard_rows(max(n, m))
    if exact is None or n * m <= exact:
        search = SearchPlan(n, m, encoder.dim, k, rows, rates)
    else:
        search = IndexPlan(n, m, encoder.dim, k, rows, rates)
    return plan_table(missing, search, rates) + _of_gpus(cluster)


def _check(encoder: Encoder) -> None:
    if encoder.name == PRECOMPUTED:
        raise UsageError("--plan is for encoders; --model precomputed encodes nothing")


def _size(path: Path) -> tuple[int, int]:
    lines, text = text_size(path)
    if not lines:
        raise BitextmineError(f"{os.fspath(path)}: empty: there is no line to embed")
    return lines, text


def _of_gpus(cluster: RayOptions | None) -> str:
    """What to know of a plan with GPUs."""
    if cluster is None or not cluster.gpus:
        return ""
    return (
        "\n--ray-gpus: the rates are those of processors, none of a GPU's was measured here; give those of a worker's "
        "GPUs, divided by its processors, with --assume embed=X --assume search=X"
    )


def _embedding(
    lines: int, text: int, encoder: Encoder, rates: Rates, cluster: RayOptions | None
) -> EmbeddingPlan:
    chunk = encoder.network.chunk_lines
    rows = shard_rows(lines, chunk)
    if cluster is not None and cluster.rows is not None:  # shards are of whole chunks
        rows = -(-cluster.rows // chunk) * chunk
    return EmbeddingPlan(lines, text, encoder.dim, rows, rates)


def _is_there(path: Path, lines: int, encoder: Encoder) -> bool:
    """Whether vectors of so many lines and this model lie beside a corpus."""
    if is_remote(path):
        return False
    npy = place_of(path, encoder.hash)
    found = Manifest()
    if npy.exists() and manifest_path(npy).exists():
        found = read_manifest(npy)
    return (found.rows, found.model_hash) == (lines, encoder.hash)
