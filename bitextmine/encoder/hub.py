"""Encoders by their name on the Hugging Face hub: ORG/NAME, or ORG/NAME@REVISION.

huggingface_hub fetches them into its own cache (HF_HOME, HF_ENDPOINT, HF_HUB_OFFLINE and its login hold), and only
what is read here: configuration, tokenizer and safetensors, no pickles and no code.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

from bitextmine.errors import BitextmineError

__all__ = ["fetch", "hub_name", "is_hub_name"]

_NAME = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([\w][\w./-]*))?")

# What the readers of folders open; modules of sentence-transformers lie in folders such as 1_Pooling.
_CONFIGURATION = (
    "config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "sentence_bert_config.json",
)
_TOKENIZER = (
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "tokenizer.model",
    "ngrams.txt",
)
_WEIGHTS = ("model.safetensors", "model.safetensors.index.json", "model-[0-9]*.safetensors")
_LASER = ("*.spm", "*.cvocab", "laser*.safetensors")
_NAMES = (*_CONFIGURATION, *_TOKENIZER, *_WEIGHTS)
FILES = [*_NAMES, *(f"[0-9]*_*/{name}" for name in _NAMES), *_LASER]


def hub_name(model: str | os.PathLike[str]) -> tuple[str, str | None] | None:
    """ORG/NAME and the revision, None for the newest; None for what cannot be such a name.

    A folder wins, as does a path that leads into one: with a folder ``models`` here, ``models/missing`` is a path.
    """
    found = _NAME.fullmatch(model) if isinstance(model, str) else None
    if found is None or Path(os.fspath(model)).exists():
        return None
    if found[2] is None and Path(found[1]).parent.is_dir():
        return None
    return found[1], found[2]


def is_hub_name(model: str | os.PathLike[str]) -> bool:
    """Whether `hub_name` finds a name."""
    return hub_name(model) is not None


def fetch(name: str, revision: str | None = None) -> Path:
    """The folder of a model of the hub in huggingface_hub's cache, fetched where it is not there. The folder's name is
    the commit.

    Raises BitextmineError, with what to do, without huggingface_hub, without a network, for a model or a revision that
    does not exist, for one that asks for a login, and for one with nothing in it that is read here.
    """
    asked = name if revision is None else f"{name}@{revision}"
    try:
        import huggingface_hub
        from huggingface_hub import errors
    except ImportError:
        raise BitextmineError(
            f"{asked}: no such folder; to fetch a model of that name from the hub: pip install "
            "'bitextmine[transformers]'"
        ) from None
    try:
        folder = Path(
            huggingface_hub.snapshot_download(
                name, revision=revision, allow_patterns=FILES, tqdm_class=_bar(), library_name="bitextmine"
            )
        )
    except errors.GatedRepoError:
        raise BitextmineError(
            f"{asked}: the hub gives this model only to those who accept its terms: do so on its page, then "
            "'hf auth login'"
        ) from None
    except errors.RevisionNotFoundError:
        raise BitextmineError(
            f"{asked}: the hub has {name}, but no revision {revision!r}: name a commit, a tag or a branch that is "
            "there, or leave out what stands behind the @"
        ) from None
    except (errors.RepositoryNotFoundError, errors.HFValidationError):
        raise BitextmineError(
            f"{asked}: no such folder, and the hub has no such model (or a private one: 'hf auth login')"
        ) from None
    except errors.LocalEntryNotFoundError:
        raise BitextmineError(f"{asked}: no such folder, and {_unreachable(asked)}") from None
    except Exception as e:  # of all kinds, from the network to the disk
        reason = str(e).strip().partition("\n")[0] or type(e).__name__
        raise BitextmineError(f"{asked}: cannot be fetched from the hub: {reason}") from e
    if not any((folder / name).is_file() for name in ("modules.json", "config.json")) and not any(
        folder.glob("*.spm")
    ):
        raise BitextmineError(
            f"{asked}: has no modules.json, config.json or *.spm: no encoder of sentence-transformers, bitextmine or "
            "LASER"
        )
    return folder


def _unreachable(asked: str) -> str:
    name, _, revision = asked.partition("@")
    command = f"hf download {name}" + (f" --revision {revision}" if revision else "")
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return (
            f"as a model of the hub it is not in the cache ({constants.HF_HUB_CACHE}), and HF_HUB_OFFLINE is set: "
            f"unset it, or where there is a network type '{command}'"
        )
    return (
        f"the hub ({constants.ENDPOINT}) cannot be reached, nor is it in the cache ({constants.HF_HUB_CACHE}): where "
        f"there is a network type '{command}', and take that folder"
    )


def _bar() -> Any:
    """tqdm's bar, on a terminal only."""
    from tqdm import tqdm

    class Bar(tqdm):  # type: ignore[misc]  # which is untyped
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            kwargs.pop("name", None)  # of huggingface_hub's own class
            if sys.stderr is None or not sys.stderr.isatty():
                kwargs["disable"] = True
            super().__init__(*args, **kwargs)

    return Bar
