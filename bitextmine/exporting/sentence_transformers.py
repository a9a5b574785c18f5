"""A model folder as sentence-transformers loads it, and its card for the Hugging Face hub.

Encoders with n-grams or further columns need a module of ours. Others get modules of the library: a sum of pieces is a
StaticEmbedding; a model with layers is an ESM of transformers, the one architecture there that is as ours:
normalisation before attention and before the feed-forward part, learned positions and none before the layers (Lin et
al. 2023, whose positions may be learned ones).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import PACKAGED, copy_folder
from bitextmine.encoder.weights import PIECES, SCALE, piece_vectors
from bitextmine.errors import BitextmineError
from bitextmine.exporting.tokenizer_json import PAD, write_tokenizer
from bitextmine.files.jsonfile import parse_json

WEIGHTS = {"qkv": None, "out": "attention.output.dense", "up": "intermediate.dense", "down": "output.dense"}
NORMS = {"attention_norm": "attention.LayerNorm", "ffn_norm": "LayerNorm"}
OWN = "bitextmine.sentence_transformers.SentenceEncoder"
CARD, RESULTS = "README.md", "results.json"

USAGE = """
## Use

    pip install bitextmine sentence-transformers

    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer("FOLDER", trust_remote_code=True)
    vectors = model.encode(["Good morning.", "Bonjour."])

The vectors are those of `bitextmine.load_encoder("FOLDER")`, which is faster. There is no code in the folder: the
flag lets sentence-transformers import the class of the installed bitextmine.
"""


def write_own_module(folder: Path, out: Path) -> None:
    """Write the folder of an encoder as a module of ours: a copy of the model folder that names the class."""
    copy_folder(folder, out)
    _write_modules([(OWN, "")], out)


def write_sentence_transformers(
    config: EncoderConfig, weights: dict[str, np.ndarray], tokenizer: Path, out: Path
) -> None:
    """Write the folder of weights as `read_weights` returns them; raises BitextmineError if a library is missing."""
    write_tokenizer(tokenizer, out / "tokenizer.json", max_pieces=config.max_pieces, pad=bool(config.layers))
    if config.layers:
        _write_layers(config, weights, out)
        modules = [("Transformer", ""), ("Pooling", "1_Pooling"), ("Normalize", "2_Normalize")]
    else:
        table = np.ascontiguousarray(piece_vectors(weights), dtype=np.float32)
        (out / "model.safetensors").write_bytes(save({"embedding.weight": table}))
        modules = [("StaticEmbedding", ""), ("Normalize", "1_Normalize")]
    for kind, path in modules:
        (out / path).mkdir(exist_ok=True)
        if kind == "Pooling":
            pooling = {"word_embedding_dimension": config.dim, "pooling_mode_mean_tokens": True}
            _write(out / path / "config.json", pooling)
    _write_modules([(f"sentence_transformers.models.{kind}", path) for kind, path in modules], out)


def _write_modules(modules: Sequence[tuple[str, str]], out: Path) -> None:
    """Write the list of modules: the class and the folder of each."""
    settings: dict[str, Any] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    _write(out / "config_sentence_transformers.json", settings)
    listed = enumerate(modules)
    _write(
        out / "modules.json",
        [{"idx": i, "name": str(i), "path": path, "type": kind} for i, (kind, path) in listed],
    )


def _write_layers(config: EncoderConfig, weights: dict[str, np.ndarray], out: Path) -> None:
    import torch

    try:
        from transformers import EsmConfig, EsmModel
    except ImportError:
        raise BitextmineError(
            "export needs the transformers library: pip install 'bitextmine[transformers]'"
        ) from None
    kind = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": PAD,
        "model_max_length": config.max_pieces,
    }
    _write(out / "tokenizer_config.json", {**kind, "model_input_names": ["input_ids", "attention_mask"]})
    _write(out / "sentence_bert_config.json", {"max_seq_length": config.max_pieces, "do_lower_case": False})
    model = EsmModel(
        EsmConfig(
            vocab_size=config.vocab_size + 1,
            pad_token_id=0,
            mask_token_id=None,
            hidden_size=config.dim,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            intermediate_size=config.ffn,
            max_position_embeddings=config.max_pieces + 1,
            position_embedding_type="absolute",
            layer_norm_eps=1e-5,
            emb_layer_norm_before=False,
            token_dropout=False,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
        ),
        add_pooling_layer=False,
    )
    state = {name: torch.from_numpy(array) for name, array in _as_esm(config, weights).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    if unexpected or any("contact_head" not in name and "position_ids" not in name for name in missing):
        raise BitextmineError(
            f"export: the ESM of this transformers wants {', '.join(missing)} and has no {', '.join(unexpected)}: "
            "another version will do"
        )
    model.save_pretrained(out, safe_serialization=True)


def _as_esm(config: EncoderConfig, weights: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Return the tensors under the names of ESM; row 0 of both tables is padding."""
    w = {name: array for name, array in weights.items() if name not in (PIECES, SCALE)}
    tables = {"word": piece_vectors(weights), "position": w["positions.weight"]}
    found = {
        f"embeddings.{name}_embeddings.weight": np.pad(table, ((1, 0), (0, 0)))
        for name, table in tables.items()
    }
    for part in ("weight", "bias"):
        found[f"encoder.emb_layer_norm_after.{part}"] = w[f"norm.{part}"]
        for i in range(config.layers):
            for ours, theirs in {**WEIGHTS, **NORMS}.items():
                array = w[f"layers.{i}.{ours}.{part}"]
                if theirs is not None:
                    found[f"encoder.layer.{i}.{theirs}.{part}"] = array
                    continue
                for name, third in zip(("query", "key", "value"), np.split(array, 3), strict=True):
                    found[f"encoder.layer.{i}.attention.self.{name}.{part}"] = third
    return {name: np.ascontiguousarray(array, dtype=np.float32) for name, array in found.items()}


def _write(path: Path, content: Any) -> None:
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def write_card(folder: Path, config: EncoderConfig, out: Path) -> None:
    """Write README.md: languages, licence, tags and results as YAML, then the text of the model folder's card.

    Results are read from results.json of the model folder, if it is there (`train/bench_public.py` writes it): a list
    of objects with task, dataset, config, metric and value. Raises BitextmineError if it is damaged.
    """
    name = folder.resolve().name
    about: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "bitext-mining", "bitextmine", "mteb"],
    }
    if config.languages:
        about["language"] = list(config.languages)
    if name in PACKAGED:  # other encoders have terms of their own
        about["license"] = "mit"
    results = _results(folder / RESULTS)
    if results:
        about["model-index"] = [{"name": name, "results": results}]
    # JSON is YAML, and needs no library.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()]
    card = folder / CARD
    body = card.read_text(encoding="utf-8") if card.is_file() else f"# {name}\n\nAn encoder of bitextmine.\n"
    if body.startswith("---\n"):  # front matter of an earlier export
        body = body.partition("\n---\n")[2].lstrip()
    (out / CARD).write_text(
        "---\n" + "\n".join(lines) + f"\n---\n\n{body.partition(USAGE)[0]}{USAGE}", "utf-8"
    )


def _results(path: Path) -> list[dict[str, Any]]:
    """Return the results as MTEB writes them into a model card."""
    if not path.is_file():
        return []
    try:
        return [
            {
                "task": {"type": row["task"]},
                "dataset": {"type": (name := row["dataset"]), "name": f"{name} ({row['config']})"}
                | {"config": row["config"], "split": "test"},
                "metrics": [{"type": row["metric"], "value": float(row["value"])}],
            }
            for row in parse_json(path.read_text(encoding="utf-8"))
        ]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BitextmineError(
            f"{path}: not a list of results ({e!r}): make it again with train/bench_public.py, or remove it"
        ) from None
