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
from bitextmine.declarations import Options, declared

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
    value = types_of_options().get(name)
    for module in (home, *package):
        value = value or vars(module).get(name)
    if inspect.isclass(value):
        return f"from {value.__module__} import {name}"
    return f"from {where_named(name, home)} import {name}"


def where_named(name, module):
    """The module that gives a type a name, of which others import it."""
    for node in ast.walk(ast.parse(inspect.getsource(module))):
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return node.module
    return module.__name__


def types_of_options():
    fields = (field for options in Options.__subclasses__() for field in declared(options).values())
    return {field.type.__name__: field.type for field in fields if inspect.isclass(field.type)}


if __name__ == "__main__":
    STUB.write_text(stub(), encoding="utf-8")
