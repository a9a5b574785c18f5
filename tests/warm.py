"""A process that has loaded the package and forks commands: loading is most of the time of a small command.

Each request is a fork with its own working folder, environment and standard streams, which runs the installed script to
the end of the interpreter. Before the fork only modules are loaded and py3langid's model is unpacked; at the end only
the teardown of modules is skipped.

Arguments: the descriptor of a socket; "torch" to load it too (the process is then slower to fork and to end).
"""

import atexit
import contextlib
import gc
import importlib
import importlib.util
import json
import os
import pkgutil
import runpy
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Modules that functions of the package import when they are called.
LATER = ("numpy", "pandas", "pyarrow.parquet", "scipy.optimize", "scipy.sparse.csgraph", "tqdm", "zstandard")
LATER_WITH_TORCH = ("torch._dynamo",)  # for an optimizer; it takes as long as torch itself


class _Missing:
    """Hides torch while the other modules are loaded."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: Any = None) -> None:
        if name == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


def load(with_torch: bool) -> None:
    import bitextmine

    finder: Any = _Missing()
    if not with_torch:
        sys.meta_path.insert(0, finder)
    modules = [
        found.name
        for found in pkgutil.walk_packages(bitextmine.__path__, "bitextmine.", onerror=lambda _: None)
        if not found.name.rpartition(".")[2].startswith("_")  # compiled modules, and scripts
    ]
    for name in (*LATER, *(LATER_WITH_TORCH if with_torch else ()), *modules):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    if not with_torch:
        sys.meta_path.remove(finder)
    if importlib.util.find_spec("py3langid") is not None:
        importlib.import_module("bitextmine.languages.identify").Languages()
    tempfile.tempdir = None  # each command reads $TMPDIR itself


def next_command(control: socket.socket) -> str:
    """Fork for each request; return the script to run, in the child.

    A request is the descriptors of the three streams, of a file with the command, and of a pipe for the process id
    and the exit code. Another process waits for the exit code, so that commands may run in parallel.
    """
    while True:
        asked, descriptors, _, _ = socket.recv_fds(control, 1, 5)
        if not asked:
            os._exit(0)
        keeper = os.fork()
        if keeper:
            for descriptor in descriptors:
                os.close(descriptor)
            with contextlib.suppress(ChildProcessError):  # all have been waited for
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            continue
        control.close()
        *streams, request, answer = descriptors
        child = os.fork()
        if child:
            for descriptor in streams:  # so that readers see their end
                os.close(descriptor)
            for number in range(3):
                os.close(number)
            os.write(answer, b"%d\n" % child)
            os.write(answer, b"%d\n" % os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
            os._exit(0)
        os.close(answer)
        for number, descriptor in enumerate(streams):
            os.dup2(descriptor, number)
            os.close(descriptor)
        with open(request, encoding="ascii") as file:
            told = json.load(file)
        os.chdir(told["cwd"])
        os.environ.clear()
        os.environ.update(told["env"])
        sys.argv = told["argv"]
        script = Path(sys.argv[0])
        sys.path[0] = str(script.parent)
        if told["hooks"]:
            exec(compile(Path(told["hooks"]).read_text(), told["hooks"], "exec"), {})
        return str(script)


def run(script: str) -> int:
    """Run a script as Python does; return the exit code."""
    code: Any = 0
    try:
        runpy.run_path(script, run_name="__main__")
    except SystemExit as end:
        code = end.code or 0
    except BaseException:
        traceback.print_exc()
        code = 1
    if not isinstance(code, int):
        print(code, file=sys.stderr)
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except OSError as error:
        print(f"Exception ignored in: {sys.stdout!r}\n{error!r}", file=sys.stderr)
        code = 120
    sys.stderr.flush()
    return code


if __name__ == "__main__":
    load(with_torch=sys.argv[2:] == ["torch"])
    gc.collect()
    gc.freeze()  # or the first collection in each child would copy every object
    os._exit(run(next_command(socket.socket(fileno=int(sys.argv[1])))) & 0xFF)
