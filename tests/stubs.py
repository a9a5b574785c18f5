"""Write bitextmine/__init__.pyi, the types of `import bitextmine`: python tests/stubs.py.

Functions that take options have a keyword there for every field, which type checkers and editors cannot see otherwise.
A test compares the file with what this makes.
"""

import ast
import builtins
import enum
import inspect
import sys
from collections import abc
from pathlib import Path

import bitextmine

STUB = Path(bitextmine.__file__).with_name("__init__.pyi")


def stub():
    lines, imports = ["# Made by tests/stubs.py."], set()
    for name in bitextmine.__all__:
        value = getattr(bitextmine, name)
        if inspect.isfunction(value) and hasattr(value, "__signature__"):
            lines.append(definition(name, value, imports))
        else:
            module = getattr(value, "__module__", "bitextmine.version")
            there = getattr(value, "__name__", name)
            imports.add(f"from {module} import {there}" + (f" as {name}" if there != name else ""))
    lines[1:1] = [*sorted(imports), f"__all__ = {bitextmine.__all__}"]
    return "\n".join([*lines, ""])


def definition(name, function, imports):
    (source,) = ast.parse(inspect.getsource(function)).body
    written = {
        each.arg: ast.unparse(each.annotation) for each in (*source.args.args, *source.args.kwonlyargs)
    }
    parts = []
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        annotation = written.get(parameter.name, "")
        if (
            not annotation or parameter.annotation == f"{annotation} | None"
        ):  # a field, or an object of options
            annotation = parameter.annotation
        imports |= imported(annotation, function)
        default = "" if parameter.default is parameter.empty else f" = {shown(parameter.default)}"
        parts.append(f"{parameter.name}: {annotation}{default}")
    returned = ast.unparse(source.returns)
    imports |= imported(returned, function)
    return f"def {name}(\n" + "".join(f"    {part},\n" for part in parts) + f") -> {returned}: ..."


def shown(default):
    if isinstance(default, enum.Enum):
        return repr(str(default))
    return repr(default) if isinstance(default, str | int | float | tuple | None) else "..."


def imported(annotation, function):
    """The imports of the names in an annotation."""
    names = {node.id for node in ast.walk(ast.parse(annotation)) if isinstance(node, ast.Name)}
    return {import_of(name, function) for name in names if not hasattr(builtins, name)}


def import_of(name, function):
    if name in ("os", "pandas"):
        return f"import {name}"
    if name in ("Any", "Literal", "IO"):
        return f"from typing import {name}"
    if hasattr(abc, name):
        return f"from collections.abc import {name}"
    home = sys.modules[function.__module__]
    package = [module for name, module in sorted(sys.modules.items()) if name.startswith("bitextmine.")]
    found = next((vars(module)[name] for module in (home, *package) if name in vars(module)), None)
    if inspect.isclass(found):
        return f"from {found.__module__} import {name}"
    # Another name of a type: from the module that the function's own imports it of.
    for node in ast.walk(ast.parse(inspect.getsource(home))):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return f"from {node.module} import {name}"
    return f"from {home.__name__} import {name}"


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
