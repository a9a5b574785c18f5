"""The encoders that ship with the package, by name; nothing heavy is imported here."""

from typing import Annotated

from bitextmine.declarations import Opt, Path

Model = Annotated[
    Path,
    Opt(
        "--model",
        "Encoder: europe5, europe20, a folder made by 'bitextmine train', sentence-transformers or LASER2, or "
        "ORG/NAME[@REVISION] on the Hugging Face Hub.",
        metavar="NAME|FOLDER",
        envvar="BITEXTMINE_MODEL",
        default="europe5, or $BITEXTMINE_MODEL",
    ),
]
