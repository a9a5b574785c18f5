"""What tests of the index share with those of the search that it rests on."""

from __future__ import annotations

from ..search.conftest import one_thread, way

__all__ = ["one_thread", "way"]
