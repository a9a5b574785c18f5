"""The `bitextmine` command with its subcommands.

Commands import their stages when they run, so that `bitextmine --help` does not wait for torch.
"""

from bitextmine.cli import corpora, evaluation, mining, pairs, training  # noqa: F401 (they add their commands)
from bitextmine.cli.shell import hold_standard_streams, program
from bitextmine.system import limit_threads

__all__ = ["main", "program"]

_ORDER = "train adapt encoder export split embed index mine align evaluate info report score filter"
program.commands = {name: program.commands[name] for name in _ORDER.split()}  # in the order of a pipeline


def main() -> None:
    """Run the installed command."""
    hold_standard_streams()
    limit_threads()
    program(prog_name="bitextmine")
