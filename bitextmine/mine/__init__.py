"""Mining: neighbours in, sentence pairs out.

``bitextmine.mine`` is this package and the function `bitextmine.mine.api.mine` in one: Python sets the name to the
package as soon as one of its modules is imported, so the package itself can be called.
"""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any


class CallablePackage(ModuleType):
    """This package, with a call and its signature."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        """Mine two texts; see `bitextmine.mine.api.mine`."""
        from bitextmine.mine.api import mine

        return mine(*args, **options)

    @property
    def __doc__(self) -> str:  # type: ignore[override]
        """What help() shows: the function, not the package."""
        from bitextmine.mine.api import mine

        summary, _, rest = (inspect.getdoc(mine) or "").partition("\n")
        return f"{summary}\n\nmine{inspect.signature(mine)}\n{rest}"

    @property
    def __signature__(self) -> inspect.Signature:
        from bitextmine.mine.api import mine

        return inspect.signature(mine)


sys.modules[__name__].__class__ = CallablePackage
