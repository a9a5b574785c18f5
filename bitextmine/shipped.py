"""The encoders that ship with the package, and the choice among them; nothing heavy is imported here."""

import json
import logging
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Annotated, Any

from bitextmine.declarations import Kind, Opt
from bitextmine.errors import UsageError
from bitextmine.languages.codes import is_stated, same_code

log = logging.getLogger(__name__)

# From the smallest to the one of most languages; `auto` takes the first that knows all of a text's.
SHIPPED = ("europe5", "world56")
AUTO = "auto"
# Names of the last one, which is taken where a language is unknown.
ALIASES = (AUTO, "default")


def check_model(value: Any) -> Any:
    """Return an encoder, or the name or folder of one."""
    if not isinstance(value, (str, os.PathLike)) and not hasattr(value, "encode_pieces"):
        raise UsageError(f"expected an encoder, or the name or folder of one, found {value!r}")
    return value


Model = Annotated[
    Any,
    Kind("auto|NAME|FOLDER", check_model, "str | os.PathLike[str] | Encoder"),
    Opt(
        "--model",
        f"Encoder: a built-in one ({' or '.join(SHIPPED)}; auto: the first of them that knows the languages), a folder "
        "made by 'bitextmine train', sentence-transformers or LASER2, or ORG/NAME[@REVISION] on the Hugging Face Hub.",
        envvar="BITEXTMINE_MODEL",
        default="auto, or $BITEXTMINE_MODEL",
    ),
]
Second = Annotated[
    Any | None,
    Kind("NAME|FOLDER", check_model, "str | os.PathLike[str] | Encoder"),
    Opt("--second", "A second encoder for the pairs in doubt, larger and slower: any that --model takes."),
]


def shipped_folder(name: str) -> Path:
    """Return the folder of an encoder that ships, by its name or an alias."""
    return Path(__file__).parent / "encoder" / "packaged" / (SHIPPED[-1] if name in ALIASES else name)


@cache
def languages_of(name: str) -> tuple[str, ...]:
    """Return the codes of the languages that an encoder that ships was trained on."""
    config = json.loads((shipped_folder(name) / "config.json").read_text(encoding="utf-8"))
    return tuple(config["languages"])


def choose_model(model: Any, langs: Iterable[str | None]) -> Any:
    """Return the name of the encoder for texts in some languages if the model is "auto", and any other model as it is.

    Where a language is unknown (None, "", und), or no encoder knows all, the one of most languages is taken; a warning
    about its texts names the language.
    """
    if not isinstance(model, (str, os.PathLike)) or os.fspath(model) != AUTO:
        return model
    stated = dict.fromkeys(langs)
    known = [lang for lang in stated if lang is not None and is_stated(lang)]
    wanted = {same_code(lang) for lang in known}
    for name in SHIPPED:
        if len(known) == len(stated) > 0 and wanted <= {same_code(code) for code in languages_of(name)}:
            break
    if known:
        *most, last = known
        log.info("--model auto: %s, for %s", name, f"{', '.join(most)} and {last}" if most else last)
    return name
