"""A package that is a function, too: Python sets the name of a package to the package as soon as one of its modules is
imported, so a function of that name would vanish."""

from __future__ import annotations

import importlib
import inspect
import sys
from types import ModuleType
from typing import Any

__all__ = ["make_callable"]


def make_callable(package: str, module: str, name: str) -> None:
    """Lets ``package``, which is being imported, be called: that calls function ``name`` of ``module``, which is only
    then imported. help() and inspect.signature() show the function."""

    def function() -> Any:
        return getattr(importlib.import_module(module), name)

    class CallablePackage(ModuleType):
        """The package, with a call and its signature."""

        def __call__(self, *args: Any, **options: Any) -> Any:
            return function()(*args, **options)

        @property
        def __doc__(self) -> str:  # type: ignore[override]
            """What help() shows: the function, not the package."""
            summary, _, rest = (inspect.getdoc(function()) or "").partition("\n")
            return f"{summary}\n\n{name}{inspect.signature(function())}\n{rest}"

        @property
        def __signature__(self) -> inspect.Signature:
            return inspect.signature(function())

    sys.modules[package].__class__ = CallablePackage
