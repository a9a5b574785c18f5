"""Several pairs of corpora in one run: which they are, what their outputs are called, each corpus embedded once."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path

from bitextmine.encoder import Encoder
from bitextmine.errors import UsageError
from bitextmine.files.tables import check_languages
from bitextmine.mining.bitext import check_output, inputs_of
from bitextmine.mining.options import WorkOptions
from bitextmine.mining.run import check_file, check_two, cluster_encoding, embedded_file
from bitextmine.mining.texts import FileText, find_text

__all__ = ["embed_all", "find_pairs", "output_names"]

Pair = tuple[FileText, FileText]


def find_pairs(
    files: Sequence[str | os.PathLike[str]],
    src: tuple[Sequence[str], Sequence[str | os.PathLike[str]]],
    tgt: tuple[Sequence[str], Sequence[str | os.PathLike[str]]],
    directory: str | os.PathLike[str] = ".",
    name: str | None = None,
    errors: str = "strict",
) -> list[Pair]:
    """Each source with each target.

    files: both corpora, or none; src, tgt: languages and files of that side. Where there are files, languages are
    theirs, in the same order, or left out. Raises UsageError where they do not go together, and for what `find_text`
    does.
    """
    if files:
        if len(files) != 2:
            found = ", ".join(str(file) for file in files)
            raise UsageError(
                f"expected two corpora, SRC and TGT, found {found}; for more targets give the files with --src-file "
                "and --tgt-file"
            )
        if src[1] or tgt[1]:
            raise UsageError(
                "SRC and TGT name the files already: --src-file and --tgt-file do not go with them"
            )
        src, tgt = (src[0], files[:1]), (tgt[0], files[1:])
    sides: list[list[FileText]] = []
    both_sides = (("source", "--src", src), ("target", "--tgt", tgt))
    for side, option, (langs, paths) in both_sides:
        if not langs and not paths:
            raise UsageError(f"no {side} corpus: give {option} or {option}-file, or both corpora by name")
    for side, option, (langs, paths) in both_sides:
        if paths and langs and len(langs) != len(paths):
            raise UsageError(
                f"{option} is given {len(langs)} times and there are {len(paths)} {side} files: give the language of "
                "each, in the same order, or of none"
            )
        if len(set(langs)) < len(langs) and not paths:
            raise UsageError(f"{option} names a language twice: {', '.join(langs)}")
        both = itertools.zip_longest(langs, paths)
        sides.append([find_text(side, lang, path, directory, name, errors) for lang, path in both])
    return list(itertools.product(sides[0], sides[1]))


def output_names(
    output: str | os.PathLike[str], pairs: Sequence[Pair], gold: str | os.PathLike[str] | None = None
) -> list[str | os.PathLike[str]]:
    """Where the pairs of each two corpora go: the name, with their languages in the place of {src} and {tgt}.

    Raises UsageError where two of them would go to the same place, and for gold with more than two corpora.
    """
    name = os.fspath(output)
    if "{src}" not in name and "{tgt}" not in name and len(pairs) == 1:
        return [output]
    names = [name.replace("{src}", src.lang).replace("{tgt}", tgt.lang) for src, tgt in pairs]
    if len(set(names)) < len(names):
        said = ", ".join(f"{src.name} with {tgt.name}" for src, tgt in pairs)
        where = "standard output takes" if name == "-" else f"-o {name} is"
        raise UsageError(
            f"{where} one output, and {len(pairs)} are asked for ({said}): name a file for each with their languages, "
            "as in -o mined.{src}-{tgt}.tsv"
        )
    if gold is not None and len(pairs) > 1:
        raise UsageError("--gold holds the pairs of two corpora, and more are mined; mine those two alone")
    return list(names)


def embed_all(
    pairs: Sequence[Pair], outputs: Sequence[str | os.PathLike[str]], encoder: Encoder, work: WorkOptions
) -> dict[FileText, Path]:
    """The embedding files of all corpora, for `mine_texts`; made where they are missing.

    Raises BitextmineError for corpora and outputs that `mine_texts` refuses, before the work.
    """
    for (src, tgt), output in zip(pairs, outputs, strict=True):
        check_two(src, tgt)
        check_output(output, inputs_of(text for pair in pairs for text in pair), force=work.force)
        check_languages(output, (src.lang, tgt.lang), "the names of the corpora, or --src and --tgt")
    texts = dict.fromkeys(text for pair in pairs for text in pair)
    for text in texts:
        check_file(text, encoder, work)
    with cluster_encoding(encoder, encoder, work) as encoding:
        return {text: embedded_file(text, encoder, work, encoding) for text in texts}
