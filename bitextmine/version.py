"""The version of the package, as signatures and manifests state it."""

from __future__ import annotations

__version__ = "0.3.0"
