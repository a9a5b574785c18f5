"""What a node says of itself. Ray sends this function as it is, so that it runs where the package is missing or is of
another version: nothing of the package is imported at the top."""

from __future__ import annotations

from typing import Any


def look(folders: dict[str, str]) -> dict[str, Any]:
    """Facts about the node that this runs on: host (its name), version (of this package, None where it is missing),
    trouble (why it cannot be imported), python (the interpreter's path), unseen (of `folders`, from a folder to the
    name of a file in it, those where the file is not seen), readonly (those that cannot be written to)."""
    import os
    import socket
    import sys
    from pathlib import Path

    version: str | None = None
    trouble: str | None = None
    try:
        from bitextmine.version import __version__

        version = __version__
    except Exception as e:  # whatever keeps it from being imported
        trouble = f"{type(e).__name__}: {e}"
    seen = {folder: Path(folder, name).exists() for folder, name in folders.items()}
    return {
        "host": socket.gethostname(),
        "version": version,
        "trouble": trouble,
        "python": sys.executable,
        "unseen": [folder for folder, there in seen.items() if not there],
        "readonly": [folder for folder, there in seen.items() if there and not os.access(folder, os.W_OK)],
    }
