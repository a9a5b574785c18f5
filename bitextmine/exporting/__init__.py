"""Encoders for other libraries: folders that sentence-transformers loads, and graphs for ONNX Runtime."""

from typing import Annotated, Literal

from bitextmine.declarations import Opt

Target = Annotated[
    Literal["sentence-transformers", "onnx"],
    Opt(
        "--to",
        "sentence-transformers: a folder for SentenceTransformer(OUT, trust_remote_code=True), with a model card; "
        "onnx: OUT/model.onnx and OUT/tokenizer.json.",
    ),
]
