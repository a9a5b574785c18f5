"""The house stands as CONTRIBUTING.md draws it: no import circles, and rooms import one way.

Every import counts, those inside functions and those for type checkers too. It is read from the source.
"""

import ast
import importlib
from graphlib import CycleError, TopologicalSorter

import pytest

from .stubs import STUB, stub

# From the top of the house down: a room imports only from lines below its own, and from itself.
# "bitextmine" is the package's __init__.py, the names that `import bitextmine` offers.
ROOMS = [
    ["__main__"],
    ["cli"],
    ["bitextmine", "info", "opusfilter", "sentence_transformers"],
    ["adaptation", "reporting"],
    ["alignment", "evaluation", "exporting", "scoring", "training"],
    ["mining"],
    ["distributed"],
    ["embeddings"],
    ["documents", "encoder", "search"],
    ["files"],
    ["shipped"],
    ["languages"],
    ["run"],
    ["declarations"],
    ["arguments", "device", "executor"],
    ["compiled", "console", "display", "signature", "system"],
    ["errors", "version"],
]
LEVEL = {room: level for level, rooms in enumerate(ROOMS) for room in rooms}


def module_name(path, root):
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree, names):
    """The modules among ``names`` that a file imports, wherever it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "relative imports are not followed here"
            for alias in node.names:
                if f"{node.module}.{alias.name}" in names:
                    yield f"{node.module}.{alias.name}"
                elif node.module in names:
                    yield str(node.module)


def imports_of(package):
    files = {module_name(path, package.parent): path for path in sorted(package.rglob("*.py"))}
    return {
        name: set(imported(ast.parse(path.read_text(encoding="utf-8")), set(files))) - {name}
        for name, path in files.items()
    }


def circle(imports):
    """Modules each of which imports the one before it, the first also being the last; empty if there are none such."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as e:
        return list(e.args[1])
    return []


def room_of(module):
    return [*module.split("."), "bitextmine"][1]


def upward(imports):
    """Arrows between rooms that do not lead down."""
    return [
        f"{name} imports {target}"
        for name, targets in imports.items()
        for target in sorted(targets)
        if room_of(name) != room_of(target) and LEVEL[room_of(name)] >= LEVEL[room_of(target)]
    ]


@pytest.fixture(scope="module")
def imports(root):
    found = imports_of(root / "bitextmine")
    assert len(found) > 100
    return found


def test_no_module_reaches_itself(imports):
    assert circle(imports) == []


def test_every_room_has_its_place(imports):
    unknown = {room_of(module) for module in imports} - set(LEVEL)
    assert not unknown, f"say in ROOMS where {', '.join(sorted(unknown))} stand"


def test_rooms_import_one_way(imports):
    assert upward(imports) == []


def test_editors_know_every_keyword():
    assert STUB.read_text(encoding="utf-8") == stub(), "run python tests/stubs.py"


def test_scripts_import_names_that_are_there(root):
    """Most scripts are too slow to run here; this finds those that a change elsewhere left behind."""
    paths = [path for name in ("train", "index", "mine") for path in (root / name).glob("*.py")]
    trees = {path.stem: ast.parse(path.read_text(encoding="utf-8")) for path in paths}
    assert trees
    for script, tree in trees.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom):
                continue
            names, module = [alias.name for alias in node.names], node.module or ""
            if module in trees:
                missing = set(names) - defined(trees[module])
                assert not missing, f"{script}.py imports {', '.join(missing)} from {module}.py"
            elif module.startswith("bitextmine"):
                there = importlib.import_module(module)
                for name in names:
                    if not hasattr(there, name):
                        importlib.import_module(f"{module}.{name}")


def defined(tree):
    """The names that a module defines or imports at its top level."""
    names = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            names.update(alias.asname or alias.name for alias in node.names)
        else:
            names.update(name.id for name in ast.walk(node) if isinstance(name, ast.Name))
    return names
