"""Mining: neighbours in, sentence pairs out.

``bitextmine.mine`` is this package and the function `bitextmine.mine.api.mine` in one.
"""

from __future__ import annotations

from bitextmine.callable import make_callable

make_callable(__name__, "bitextmine.mine.api", "mine")
