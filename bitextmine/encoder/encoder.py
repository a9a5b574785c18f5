"""The encoder as every other stage sees it: lines in, unit vectors out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from bitextmine.arguments import whole_number
from bitextmine.encoder.pieces import Pieces
from bitextmine.encoder.protocols import Network, PieceMaker, PieceRows
from bitextmine.errors import BitextmineError, UsageError
from bitextmine.system import processors

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Encoder"]

# What sentence-transformers and MTEB pass to `encode` besides the arguments that it has, none of which would change a
# vector.
IGNORED = frozenset(
    (
        *("prompt_name", "device", "pool", "chunk_size", "task"),  # sentence-transformers
        *(
            "task_name",
            "task_metadata",
            "hf_split",
            "hf_subset",
            "prompt_type",
            "request_qid",
            "num_proc",
        ),  # MTEB
    )
)


class Encoder:
    """Turns lines of any of its languages into comparable vectors; make one with `load_encoder`.

    Attributes: dim (int), max_pieces (int), name (str, the folder's), hash (16 hex digits of the folder's content; of
    one from the hub ORG/NAME@COMMIT),
    languages (tuple of str, those it was trained on), device (str: cpu, cuda, cuda:N), network and tokenizer (what it
    is put together from, `protocols`), folder (Path, None where it is no model folder of ours).
    """

    def __init__(
        self,
        network: Network,
        tokenizer: PieceMaker,
        *,
        name: str,
        hash: str,
        max_pieces: int,
        languages: tuple[str, ...] = (),
        folder: Path | None = None,
    ) -> None:
        self.network = network
        self.tokenizer = tokenizer
        self.name, self.hash = name, hash
        self.dim, self.device = network.dim, network.device
        self.max_pieces, self.languages, self.folder = max_pieces, languages, folder

    def __repr__(self) -> str:
        return f"<Encoder {self.name}: {self.dim} dimensions, on {self.device}, hash {self.hash}>"

    @overload
    def encode(
        self,
        sentences: str | Iterable[str] | Iterable[Mapping[str, Any]],
        *,
        convert_to_numpy: Literal[True] = ...,
        convert_to_tensor: Literal[False] = ...,
        **options: Any,
    ) -> np.ndarray: ...

    @overload
    def encode(
        self,
        sentences: str | Iterable[str] | Iterable[Mapping[str, Any]],
        *,
        convert_to_numpy: bool = ...,
        convert_to_tensor: bool = ...,
        **options: Any,
    ) -> Any: ...

    def encode(
        self,
        sentences: str | Iterable[str] | Iterable[Mapping[str, Any]],
        *,
        batch_tokens: int | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        normalize_embeddings: bool = True,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        output_value: str | None = "sentence_embedding",
        precision: str = "float32",
        truncate_dim: int | None = None,
        **ignored: Any,
    ) -> Any:
        """Vectors of sentences: of one string (dim,), of n strings (n, dim), float32, row i for sentence i.

        Rows have length 1, so that the product of two is their cosine. A sentence without pieces (empty, or blanks
        only) gets zeros: its cosine with everything is 0. Of a sentence of more than ``max_pieces`` pieces the first
        ones count. Equal sentences have equal vectors. ``batch_tokens``: the most pieces in a batch.

        The other arguments are those of sentence-transformers, so that code for its models, MTEB's for one, takes an
        encoder as it is. ``convert_to_tensor`` makes a torch tensor on ``device`` of the result, ``convert_to_numpy``
        False a list of tensors, one for each sentence. ``prompt`` is put before each sentence that is not blank (and
        after the prompt that a folder of sentence-transformers has of its own). These change nothing:
        ``normalize_embeddings``, as all vectors have length 1; ``batch_size``, as batches are filled by pieces;
        ``show_progress_bar``; and those in `IGNORED` (prompt_name, device, task_name, prompt_type and so on). MTEB's
        batches, dicts with a list "text", are taken for the sentences in them.

        Raises BitextmineError for a sentence that is no string, and for an ``output_value`` other than
        "sentence_embedding", a ``precision`` other than "float32" or a ``truncate_dim``; UsageError for sizes of
        batches that are no whole numbers from 1; TypeError for an argument that neither library has.
        """
        if unknown := sorted(set(ignored) - IGNORED):
            raise TypeError(f"encode() got an unexpected keyword argument {unknown[0]!r}")
        for size, value in (("batch_tokens", batch_tokens), ("batch_size", batch_size)):
            if value is not None:
                whole_number(size, value)
        if truncate_dim is not None and truncate_dim != self.dim:
            raise BitextmineError(f"encode gives {self.dim} dimensions, not truncate_dim={truncate_dim!r}")
        if output_value not in ("sentence_embedding", None):
            raise BitextmineError(f"encode gives sentence_embedding, not output_value={output_value!r}")
        if precision != "float32":
            raise BitextmineError(f"encode gives float32, not precision={precision!r}")
        lines = [sentences] if isinstance(sentences, str) else _lines(sentences)
        if prompt:
            lines = [prompt + line if line.strip() else line for line in lines]
        pieces, inverse = self._pieces(lines)
        vectors = self.encode_pieces(pieces, batch_tokens=batch_tokens).astype(np.float32, copy=False)
        vectors = vectors if inverse is None else vectors[inverse]
        found = vectors[0] if isinstance(sentences, str) else vectors
        if convert_to_numpy and not convert_to_tensor:
            return found
        import torch

        tensor = torch.from_numpy(found).to(self.device)
        return tensor if convert_to_tensor or isinstance(sentences, str) else list(tensor)

    def encode_query(self, sentences: str | Iterable[str], **options: Any) -> Any:
        """`encode`: queries and documents are encoded alike."""
        return self.encode(sentences, **options)

    encode_document = encode_corpus = encode_query

    @property
    def max_seq_length(self) -> int:
        """``max_pieces``, as sentence-transformers calls it."""
        return self.max_pieces

    @property
    def similarity_fn_name(self) -> str:
        """What `similarity` computes: "cosine"."""
        return "cosine"

    def get_sentence_embedding_dimension(self) -> int:
        """``dim``, as sentence-transformers calls it."""
        return self.dim

    get_embedding_dimension = get_sentence_embedding_dimension

    @property
    def mteb_model_meta(self) -> Any:
        """What MTEB wants to know of a model that it has not heard of (`mteb.models.ModelMeta`): name, hash, size."""
        from mteb.models import ModelMeta

        known = {
            "name": self.name if "/" in self.name else f"bitextmine/{self.name}",
            "revision": self.hash,
            "embed_dim": self.dim,
            "max_tokens": self.max_pieces,
            "similarity_fn_name": self.similarity_fn_name,
        }
        return ModelMeta.create_empty(overwrites=known)

    def similarity(self, a: np.ndarray | Tensor, b: np.ndarray | Tensor) -> Any:
        """Cosines (n, m) float32 of vectors a (n, dim) with vectors b (m, dim); a single vector (dim,) counts as one
        row. 0 for a row of zeros. A tensor where a or b is one, else an array."""
        return self._cosines(a, b, pairwise=False)

    def similarity_pairwise(self, a: np.ndarray | Tensor, b: np.ndarray | Tensor) -> Any:
        """Cosines (n,) float32 of row i of a (n, dim) with row i of b (n, dim), as `similarity`."""
        return self._cosines(a, b, pairwise=True)

    def _cosines(self, a: Any, b: Any, pairwise: bool) -> Any:
        tensor = next((side for side in (a, b) if hasattr(side, "cpu")), None)
        x, y = (
            _units(np.atleast_2d(np.asarray(side.cpu() if hasattr(side, "cpu") else side, dtype=np.float32)))
            for side in (a, b)
        )
        found = np.einsum("ij,ij->i", x, y) if pairwise else x @ y.T
        return found if tensor is None else tensor.new_tensor(found)

    def _pieces(self, lines: Sequence[str]) -> tuple[Pieces, np.ndarray | None]:
        """As `tokenize`, but that equal lines are found only where encoding one takes longer than that."""
        if self.network.slow:
            pieces, _, inverse = self.tokenize(lines)
            return pieces, inverse
        return self.tokenizer.encode(lines, self.max_pieces, threads=processors())[0], None

    def tokenize(self, lines: Sequence[str]) -> tuple[Pieces, int, np.ndarray | None]:
        """Pieces of the distinct lines, how many of these were cut to max_pieces, and for each line the row of
        its pieces (None: row i is line i)."""
        first: dict[str, int] = {}
        inverse: np.ndarray | None = np.fromiter(
            (first.setdefault(line, len(first)) for line in lines), dtype=np.int64, count=len(lines)
        )
        if len(first) == len(lines):
            inverse = None
        pieces, cut = self.tokenizer.encode(list(first), self.max_pieces, threads=processors())
        return pieces, cut, inverse

    def encode_pieces(self, pieces: Pieces, *, batch_tokens: int | None = None) -> np.ndarray:
        """(n, dim) unit rows for n tokenised sentences, float32 (from a GPU float16); no pieces give zeros.

        The same pieces with the same ``batch_tokens`` give the same bits on one machine.
        """
        return self.network.vectors(pieces, batch_tokens)

    def piece_rows(self) -> tuple[np.ndarray, np.ndarray]:
        """The vector of each piece, (pieces, d) int8, each on a scale of its own, and its norm (pieces,) float32.

        Raises BitextmineError for an encoder whose sentence vectors are not sums of such vectors.
        """
        if not isinstance(self.network, PieceRows):
            raise BitextmineError(
                f"the encoder '{self.name}' has no vectors of pieces to compare, as --rescore would: it has layers, "
                "or runs on a GPU"
            )
        return self.network.piece_rows()

    def describe(self) -> dict[str, Any]:
        """What `bitextmine info` says of a model."""
        network = self.network.describe()
        return {
            "kind": network.pop("kind"),
            "name": self.name,
            "hash": self.hash,
            "languages": ", ".join(self.languages) or "not stated",
            "max_pieces": self.max_pieces,
            **network,
        }


def _lines(sentences: Iterable[str] | Iterable[Mapping[str, Any]]) -> list[str]:
    """The sentences as a list; those of batches ({"text": [...]}) one after another."""
    if not isinstance(sentences, Iterable):
        raise UsageError(f"encode: expected a sentence or sentences, found {sentences!r}")
    lines: list[Any] = list(sentences)
    if any(isinstance(item, Mapping) for item in lines[:1]):
        lines = [line for batch in lines for line in _texts(batch)]
    wrong = next((i for i, line in enumerate(lines) if not isinstance(line, str)), None)
    if wrong is not None:
        raise BitextmineError(f"sentence {wrong}: expected a string, found {lines[wrong]!r}")
    return lines


def _texts(batch: Any) -> list[Any]:
    """The sentences of one of MTEB's batches."""
    texts = batch.get("text") if isinstance(batch, Mapping) else None
    if texts is None or isinstance(texts, str) or not isinstance(texts, Iterable):
        raise BitextmineError(
            f"encode: expected a batch with a list 'text', as MTEB makes them, found {batch!r}"
        )
    return list(texts)


def _units(vectors: np.ndarray) -> np.ndarray:
    """(n, d) -> the same rows with length 1; a row of zeros stays one."""
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
