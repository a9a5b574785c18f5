"""What the tests of several commands use."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

MINE = ("mine", "--src", "en", "--tgt", "fr", "--threshold", "none")
NO_MODEL = ("--model", "no-such-model")  # reported only if an error is not found before the model is loaded


def contents(folder):
    """Every file below a folder, hidden ones too."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def texts(tsv):
    return [tuple(row.split("\t")[-2:]) for row in tsv.splitlines()]


def scores(tsv):
    return [float(row.split("\t")[0]) for row in tsv.splitlines()]


def table(path):
    """The rows of a TSV file with a header."""
    header, *rows = [line.split("\t") for line in path.read_text(encoding="utf-8").splitlines()]
    return [dict(zip(header, row, strict=True)) for row in rows]


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


@dataclass(frozen=True)
class Here:
    """The installed command, run in a folder, with a model as the default."""

    command: Any
    folder: Path
    env: dict[str, str]

    def __call__(self, *args, cwd="", env=None, **options):
        return self.command(*args, cwd=self.folder / cwd, env={**self.env, **(env or {})}, **options)

    def fails(self, *args, cwd="", env=None, **options):
        """Run to an error of one line, exit code 1; return the message."""
        return self.command.fails(*args, cwd=self.folder / cwd, env={**self.env, **(env or {})}, **options)

    def dies(self, hooks, count, *args, **options):
        return self.command.dies(hooks, count, *args, **{"cwd": self.folder, "env": self.env, **options})

    def refused(self, *args, code=1, **options):
        """Run to an error that leaves every file of the folder as it was; return standard error, on one line."""
        before = contents(self.folder)
        result = self(*args, code=code, **options)
        assert "Traceback" not in result.err and result.out == "", result.err
        assert contents(self.folder) == before
        return " ".join(result.err.split())

    def at(self, folder):
        return replace(self, folder=folder)


GOOD = [
    ("The doctor buys a red bicycle.", "Le médecin achète un vélo rouge."),
    ("The judge sells two umbrellas.", "La juge vend deux parapluies."),
    ("My neighbour finds 7 old maps.", "Mon voisin trouve 7 vieilles cartes."),
]


def tsv(rows):
    return "".join("\t".join(row) + "\n" for row in rows).encode()


def filter_counts(err):
    """The counts that `filter` prints."""
    counts = {}
    for line in err.splitlines():
        name, _, rest = line.rpartition("  ")[0].strip().rpartition("  ")
        if rest.strip().replace(",", "").isdigit():
            counts[name.strip()] = int(rest.replace(",", ""))
    return counts
