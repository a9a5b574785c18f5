"""The corpora of a mining command, and the names of its outputs."""

import itertools
import os
from collections.abc import Iterable, Sequence

from bitextmine.errors import UsageError
from bitextmine.files.corpus import Corpus, find_corpus
from bitextmine.files.source import Source
from bitextmine.languages.codes import language_code
from bitextmine.mining.options import CorpusOptions
from bitextmine.run import Run

Pair = tuple[Corpus, Corpus]


def text_of(
    lines_or_path: Iterable[str] | str | os.PathLike[str],
    name: str,
    lang: str | None = None,
    run: Run | None = None,
) -> Corpus:
    """Return the corpus at a path, or of lines in memory; UsageError for ``-``, a pipe, or a line that is no text."""
    lang = language_code(f"{name}_lang", lang) or None
    if isinstance(lines_or_path, (str, os.PathLike)):
        if not os.fspath(lines_or_path):
            raise UsageError(f"{name}: expected lines or the path of a corpus, found ''")
        return Corpus(_file(lines_or_path, run, name), lang, option=f"{name}_lang")
    if not isinstance(lines_or_path, Iterable):
        raise UsageError(f"{name}: expected lines or the path of a corpus, found {lines_or_path!r}")
    lines = list(lines_or_path)
    for number, line in enumerate(lines, start=1):
        if not isinstance(line, str):
            raise UsageError(f"{name}: line {number} is {line!r}, not a string; put '' to skip a line")
    return Corpus(lines, lang, name=name)


def _file(path: str | os.PathLike[str], run: Run | None, option: str) -> Source:
    source = Source.of(path, run)
    if source.reads_once:
        what = "standard input" if source.is_standard else f"the pipe {source}"
        raise UsageError(
            f"{option}: the corpus cannot be {what}, which has no place for its embedding beside it; name a file, "
            "plain or compressed"
        )
    return source


def find_pairs(named: CorpusOptions, run: Run | None = None) -> list[Pair]:
    """Return each source with each target, for each name of corpora.

    With files, the languages of a side are theirs in the same order, or none. Corpora without a file are searched in
    the folder.

    Raises:
        UsageError: the arguments contradict each other; a file is a pipe.
        BitextmineError: no corpus of a language is in the folder, or more than one.
    """
    files, src, tgt = named.corpora, (named.src, named.src_file), (named.tgt, named.tgt_file)
    if files:
        if len(files) != 2:
            found = ", ".join(str(file) for file in files)
            raise UsageError(
                f"expected two corpora, SRC and TGT, found {found}; for more targets give the files with --src-file "
                "and --tgt-file"
            )
        if src[1] or tgt[1]:
            raise UsageError("SRC and TGT already name the files: leave out --src-file and --tgt-file")
        src, tgt = (src[0], files[:1]), (tgt[0], files[1:])
    if src[1] and tgt[1] and (named.name or os.fspath(named.directory) != "."):
        option = "--name" if named.name else "--dir"
        raise UsageError(f"{option} is for corpora that are looked up; both are given as files: leave it out")
    sides: list[tuple[str, Sequence[str], list[Source]]] = []
    for side, option, (langs, paths) in (("source", "--src", src), ("target", "--tgt", tgt)):
        if not langs and not paths:
            raise UsageError(f"no {side} corpus: give {option} or {option}-file, or both corpora by name")
        if paths and langs and len(langs) != len(paths):
            raise UsageError(
                f"{option} is given {len(langs)} times, but there are {len(paths)} {side} files: give the language of "
                "each, in the same order, or of none"
            )
        sides.append((option, langs, [_file(path, run, f"{option}-file") for path in paths]))
    pairs: list[Pair] = []
    for name in named.name or (None,):
        src_side, tgt_side = (
            [Corpus(file, lang, option=option) for file, lang in itertools.zip_longest(files, langs)]
            if files
            else [Corpus(Source.of(find_corpus(named.directory, lang, name), run), lang) for lang in langs]
            for option, langs, files in sides
        )
        pairs += itertools.product(src_side, tgt_side)
    return pairs


def output_names(
    output: str | os.PathLike[str], pairs: Sequence[Pair], gold: str | os.PathLike[str] | None = None
) -> list[str | os.PathLike[str]]:
    """Return the output of each pair of corpora: the name, with {src} and {tgt} replaced by their languages."""
    name = os.fspath(output)
    if "{src}" not in name and "{tgt}" not in name and len(pairs) == 1:
        return [output]
    names = [name.replace("{src}", src.lang).replace("{tgt}", tgt.lang) for src, tgt in pairs]
    if len(set(names)) < len(names):
        said = ", ".join(f"{src.name} with {tgt.name}" for src, tgt in pairs)
        where = "standard output takes" if name == "-" else f"-o {name} is"
        raise UsageError(
            f"{where} one output, but {len(pairs)} are needed ({said}): put their languages into the name, as in "
            "-o mined.{src}-{tgt}.tsv"
        )
    if gold is not None and len(pairs) > 1:
        raise UsageError("--gold holds the pairs of two corpora, and more are mined; mine those two alone")
    return list(names)
