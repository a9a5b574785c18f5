"""A model folder as sentence-transformers loads it, and its card for the Hugging Face hub."""

import json
from pathlib import Path
from typing import Any

from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import PACKAGED, copy_folder
from bitextmine.errors import BitextmineError
from bitextmine.files.json_toml import parse_json

MODULE = "bitextmine.sentence_transformers.SentenceEncoder"
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


def write_sentence_transformers(folder: Path, config: EncoderConfig, out: Path) -> None:
    """Write a copy of a model folder whose one module is a class of ours, with a card."""
    copy_folder(folder, out)
    settings: dict[str, Any] = {"prompts": {}, "default_prompt_name": None, "similarity_fn_name": "cosine"}
    modules = [{"idx": 0, "name": "0", "path": "", "type": MODULE}]
    for name, content in (("config_sentence_transformers.json", settings), ("modules.json", modules)):
        (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    write_card(folder, config, out)


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
