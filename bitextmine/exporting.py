"""Exporting an encoder for sentence-transformers: a model folder that it loads, with a card for the hub."""

import json
import os
import shutil
from pathlib import Path
from typing import Any

from bitextmine.arguments import a_path
from bitextmine.encoder.config import EncoderConfig
from bitextmine.encoder.folder import PACKAGED, copy_folder, read_folder, resolve
from bitextmine.encoder.foreign import foreign_kind
from bitextmine.errors import BitextmineError

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


def export_encoder(
    model: str | os.PathLike[str], out: str | os.PathLike[str], *, force: bool = False
) -> Path:
    """Write an encoder as a folder for sentence-transformers, which needs bitextmine to load it.

    Args:
        model: a packaged encoder's name, a folder or a name on the hub.
        out: the folder to write, which is returned.
        force: write into a folder that is not empty.

    Raises:
        BitextmineError: the encoder is not bitextmine's, or the folder is taken.
    """
    folder = resolve(model)
    out = Path(a_path("out", out))
    if foreign_kind(folder) is not None:
        raise BitextmineError(f"{model}: was not made by bitextmine; export it with the library that made it")
    config, _ = read_folder(folder)
    card = _card(folder, config)
    made = not out.exists()
    if not made and not out.is_dir():
        raise BitextmineError(f"{out}: a file is there; name a folder to export to")
    try:
        out.mkdir(parents=True, exist_ok=True)
        if not force and any(out.iterdir()):
            raise BitextmineError(f"{out}: the folder is not empty; name another one, or pass --force")
        copy_folder(folder, out)
        settings: dict[str, Any] = {
            "prompts": {},
            "default_prompt_name": None,
            "similarity_fn_name": "cosine",
        }
        modules = [{"idx": 0, "name": "0", "path": "", "type": MODULE}]
        for name, content in (("config_sentence_transformers.json", settings), ("modules.json", modules)):
            (out / name).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        (out / CARD).write_text(card, encoding="utf-8")
    except OSError as e:
        if made:
            shutil.rmtree(out, ignore_errors=True)
        raise BitextmineError(f"{out}: cannot write: {e.strerror or e}") from None
    return out


def _card(folder: Path, config: EncoderConfig) -> str:
    """Return the card: languages, licence, tags and results as YAML, then the text of the model folder's card.

    Results are those in results.json of the model folder, which `train/bench_public.py` writes.
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
    if (folder / RESULTS).is_file():
        about["model-index"] = [{"name": name, "results": _results(folder / RESULTS)}]
    # JSON is YAML, and needs no library.
    lines = [f"{key}: {json.dumps(value, ensure_ascii=False)}" for key, value in about.items()]
    card = folder / CARD
    body = card.read_text(encoding="utf-8") if card.is_file() else f"# {name}\n\nAn encoder of bitextmine.\n"
    if body.startswith("---\n"):  # front matter of an earlier export
        body = body.partition("\n---\n")[2].lstrip()
    return "---\n" + "\n".join(lines) + f"\n---\n\n{body.partition(USAGE)[0]}{USAGE}"


def _results(path: Path) -> list[dict[str, Any]]:
    """Return results as MTEB writes them into a card; BitextmineError for another file."""
    try:
        return [
            {
                "task": {"type": row["task"]},
                "dataset": {"type": row["dataset"], "name": f"{row['dataset']} ({row['config']})"}
                | {"config": row["config"], "split": "test"},
                "metrics": [{"type": row["metric"], "value": float(row["value"])}],
            }
            for row in json.loads(path.read_text(encoding="utf-8"))
        ]
    except (ValueError, KeyError, TypeError) as e:
        raise BitextmineError(
            f"{path}: not a list of results ({e!r}): make it again with train/bench_public.py, or remove it"
        ) from None
