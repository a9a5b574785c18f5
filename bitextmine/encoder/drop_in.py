"""What MTEB and sentence-transformers ask of an encoder, on top of `Encoder.encode_lines`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from bitextmine.arguments import plain_array, whole_number
from bitextmine.errors import BitextmineError, UsageError

if TYPE_CHECKING:
    from torch import Tensor

# Further arguments that sentence-transformers and MTEB pass to `encode`; none of them would change a vector. Vectors
# always have length 1, and batches are filled by pieces.
IGNORED = frozenset(("prompt_name", "prompt_type", "device", "pool", "num_proc", "chunk_size", "request_qid"))
IGNORED |= {"task", "task_name", "task_metadata", "hf_split", "hf_subset"}
IGNORED |= {"batch_size", "show_progress_bar", "normalize_embeddings"}

Sentences = str | Iterable[str] | Iterable[Mapping[str, Any]]


class DropIn:
    """The methods of a SentenceTransformer, so that an encoder takes the place of one."""

    name: str
    hash: str
    dim: int
    device: str
    max_pieces: int

    def encode_lines(self, lines: Sequence[str], batch_tokens: int | None = None) -> np.ndarray:
        """Return the vectors (n, dim) of n lines, float32."""
        raise NotImplementedError

    def encode(
        self,
        sentences: Sentences,
        *,
        batch_tokens: int | None = None,
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        prompt: str | None = None,
        **others: Any,
    ) -> Any:
        """Return the vector (dim,) of one string or the vectors (n, dim) of n strings, float32, row i for sentence i.

        Rows have length 1 (from a GPU to within 0.001), so that the product of two is their cosine. A sentence
        without pieces (empty, or blanks only) gets zeros. Equal sentences have equal vectors.

        Args:
            sentences: one string, strings, or MTEB's batches, dicts with a list "text".
            batch_tokens: the most pieces in a batch.
            convert_to_numpy: with False, return a list of torch tensors.
            convert_to_tensor: return one torch tensor, on ``device``.
            prompt: text to put before each sentence that is not blank, after the prompt of the model folder, if any.
            others: further arguments of sentence-transformers, for code such as MTEB: those in `IGNORED`, and
                ``output_value``, ``precision`` and ``truncate_dim`` at their defaults.

        Raises:
            BitextmineError: a sentence is no string, or one of the three is not at its default.
            UsageError: a batch size is no whole number from 1.
            TypeError: an unknown argument.
        """
        fixed = {"truncate_dim": self.dim, "output_value": "sentence_embedding", "precision": "float32"}
        if unknown := sorted(others.keys() - IGNORED - fixed.keys()):
            raise TypeError(f"encode() got an unexpected keyword argument {unknown[0]!r}")
        for size, value in (("batch_tokens", batch_tokens), ("batch_size", others.get("batch_size"))):
            if value is not None:
                whole_number(size, value)
        for name, only in fixed.items():
            if (given := others.get(name)) not in (None, only):
                gives = f"{only} dimensions" if only == self.dim else only
                raise BitextmineError(f"encode gives {gives}, not {name}={given!r}")
        lines = [sentences] if isinstance(sentences, str) else _lines(sentences)
        if prompt:
            lines = [prompt + line if line.strip() else line for line in lines]
        vectors = self.encode_lines(lines, batch_tokens)
        rows = vectors[0] if isinstance(sentences, str) else vectors
        if convert_to_numpy and not convert_to_tensor:
            return rows
        import torch

        tensor = torch.from_numpy(rows).to(self.device)
        return tensor if convert_to_tensor or isinstance(sentences, str) else list(tensor)

    def encode_query(self, sentences: Sentences, **options: Any) -> Any:
        """Return `encode`: queries and documents are encoded alike."""
        return self.encode(sentences, **options)

    encode_document = encode_corpus = encode_query

    # Names of sentence-transformers.
    similarity_fn_name = "cosine"
    max_seq_length = property(lambda self: self.max_pieces)

    def get_embedding_dimension(self) -> int:
        """Return ``dim``."""
        return self.dim

    get_sentence_embedding_dimension = get_embedding_dimension

    @property
    def mteb_model_meta(self) -> Any:
        """Return the description that MTEB wants of an unknown model (`mteb.models.ModelMeta`)."""
        from mteb.models import ModelMeta

        name = self.name if "/" in self.name else f"bitextmine/{self.name}"
        known = {"name": name, "revision": self.hash, "embed_dim": self.dim, "max_tokens": self.max_pieces}
        return ModelMeta.create_empty(overwrites={**known, "similarity_fn_name": self.similarity_fn_name})

    def similarity(self, a: np.ndarray | Tensor, b: np.ndarray | Tensor, pairwise: bool = False) -> Any:
        """Return the cosines (n, m) float32 of vectors a (n, dim) with vectors b (m, dim).

        A single vector (dim,) counts as one row; a row of zeros has cosine 0. A tensor if a or b is one.
        """
        tensor: Any = next((side for side in (a, b) if hasattr(side, "cpu")), None)
        x, y = (_units(np.atleast_2d(np.asarray(plain_array(side), dtype=np.float32))) for side in (a, b))
        cosines = np.einsum("ij,ij->i", x, y) if pairwise else x @ y.T
        return cosines if tensor is None else tensor.new_tensor(cosines)

    def similarity_pairwise(self, a: np.ndarray | Tensor, b: np.ndarray | Tensor) -> Any:
        """Return the cosines (n,) float32 of row i of a (n, dim) with row i of b (n, dim), as `similarity`."""
        return self.similarity(a, b, pairwise=True)


def _lines(sentences: Iterable[str] | Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the sentences as a list; batches ({"text": [...]}) are joined."""
    if not isinstance(sentences, Iterable):
        raise UsageError(f"encode: expected a sentence or sentences, found {sentences!r}")
    lines: list[Any] = list(sentences)
    if lines and isinstance(lines[0], Mapping):
        batches, lines = lines, []
        for batch in batches:
            texts = batch.get("text") if isinstance(batch, Mapping) else None
            if isinstance(texts, str) or not isinstance(texts, Iterable):
                raise BitextmineError(
                    f"encode: expected a batch with a list 'text', as MTEB makes them, found {batch!r}"
                )
            lines += texts
    wrong = next((i for i, line in enumerate(lines) if not isinstance(line, str)), None)
    if wrong is not None:
        raise BitextmineError(f"sentence {wrong}: expected a string, found {lines[wrong]!r}")
    return lines


def _units(vectors: np.ndarray) -> np.ndarray:
    length = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
