"""The model card of an exported encoder: README.md with the front matter of the Hugging Face hub."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import PACKAGED
from bitextmine.errors import BitextmineError
from bitextmine.files.jsonfile import parse_json

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


def write_card(folder: Path, config: EncoderConfig, out: Path, *, own: bool) -> None:
    """Write README.md: languages, licence, tags and results as YAML, then the text of the model folder's card.

    Results are read from results.json of the model folder, if it is there (`train/bench_public.py` writes it): a list
    of objects with task, dataset, config, metric and value.

    Args:
        folder: the model folder.
        config: of the encoder.
        out: the exported folder.
        own: the encoder is a module of ours, and its use is explained.

    Raises:
        BitextmineError: results.json is damaged.
    """
    name = folder.resolve().name
    about: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "sentence-similarity",
        "tags": ["sentence-transformers", "sentence-similarity", "bitext-mining", "bitextmine", "mteb"],
    }
    if config.languages:
        about["language"] = list(config.languages)
    if name in PACKAGED:  # those of others state their own terms
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
                "task": {"type": found["task"]},
                "dataset": {
                    "type": found["dataset"],
                    "name": f"{found['dataset']} ({found['config']})",
                    "config": found["config"],
                    "split": "test",
                },
                "metrics": [{"type": found["metric"], "value": float(found["value"])}],
            }
            for found in parse_json(path.read_text(encoding="utf-8"))
        ]
    except (OSError, ValueError, KeyError, TypeError) as e:
        raise BitextmineError(
            f"{path}: not a list of results ({e!r}): make it again with train/bench_public.py, or remove it"
        ) from None
