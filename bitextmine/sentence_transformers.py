"""An encoder as a module of sentence-transformers.

`bitextmine export MODEL FOLDER` names `SentenceEncoder` in modules.json, and
`SentenceTransformer(FOLDER, trust_remote_code=True)` then loads the encoder. The folder holds no code:
sentence-transformers 6 asks for that word before it imports any class but its own.
`SentenceTransformer(modules=[SentenceEncoder(encoder)])` needs neither. The encoder cannot be trained further there.
"""

from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sentence_transformers.base.modules.input_module import InputModule

from bitextmine.encoder import Encoder, load_encoder
from bitextmine.encoder.folder import copy_folder
from bitextmine.encoder.pieces import Pieces
from bitextmine.errors import BitextmineError

__all__ = ["SentenceEncoder"]


class SentenceEncoder(InputModule):  # type: ignore[misc]  # the library is half typed
    """Encode sentences with an encoder of bitextmine, on its own device (by default the CPU for sums of pieces).

    Attributes:
        encoder: the encoder, which has a model folder.
    """

    save_in_root = True

    def __init__(self, encoder: Encoder) -> None:
        super().__init__()
        self.encoder = encoder

    @property
    def tokenizer(self) -> Any:
        """Return the tokenizer of the encoder."""
        return self.encoder.tokenizer

    @property
    def max_seq_length(self) -> int:
        """Return the length of the longest sentence in pieces."""
        return self.encoder.max_pieces

    def get_embedding_dimension(self) -> int:
        """Return the dimensions of a vector."""
        return self.encoder.dim

    def preprocess(self, inputs: list[str], prompt: str | None = None, **_: Any) -> dict[str, Any]:
        """Return the pieces of the sentences: input_ids (all pieces,) and offsets (n + 1,) where each begins."""
        if wrong := next((text for text in inputs if not isinstance(text, str)), None):
            raise BitextmineError(f"encode: expected a sentence, found {wrong!r}")
        lines = [prompt + line if prompt and line.strip() else line for line in inputs]
        pieces, _cut = self.encoder.cut(lines, self.encoder.run.thread_count)
        return {"input_ids": torch.from_numpy(pieces.ids), "offsets": torch.from_numpy(pieces.offsets)}

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add sentence_embedding (n, dim) float32, rows of length 1, or of zeros for no pieces."""
        ids = features["input_ids"]
        pieces = Pieces(ids.cpu().numpy(), features["offsets"].cpu().numpy())
        vectors = self.encoder.encode_pieces(pieces).astype(np.float32, copy=False)
        features["sentence_embedding"] = torch.from_numpy(vectors).to(ids.device)
        return features

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Copy the model folder's files."""
        if self.encoder.folder is None:
            raise BitextmineError(f"{self.encoder!r} has no model folder to copy")
        copy_folder(self.encoder.folder, Path(output_path))

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Load the encoder of a folder, or of a model on the hub."""
        if Path(model_name_or_path).is_dir():
            return cls(load_encoder(Path(model_name_or_path, subfolder)))
        revision = options.get("revision")
        return cls(load_encoder(model_name_or_path + (f"@{revision}" if revision else "")))
