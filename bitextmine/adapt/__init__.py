"""Adapting: an encoder mines a text, learns from what it found, and mines again.

``bitextmine.adapt`` is this package and the function `bitextmine.adapt.api.adapt` in one.
"""

from __future__ import annotations

from bitextmine.callable import make_callable

make_callable(__name__, "bitextmine.adapt.api", "adapt")
