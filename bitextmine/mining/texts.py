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
    option: str | None = None,
) -> Corpus:
    """Return the corpus at a path, or of lines in memory; UsageError for ``-``, a pipe, or a line that is no text.

    `option` gives the language, for messages: by default ``src_lang`` or ``tgt_lang``; "" if nothing does.
    """
    lang = language_code(f"{name}_lang", lang) or None
    if isinstance(lines_or_path, (str, os.PathLike)):
        if not os.fspath(lines_or_path):
            raise UsageError(f"{name}: expected lines or the path of a corpus, found ''")
        option = f"{name}_lang" if option is None else option
        return Corpus(_file(lines_or_path, run, name), lang, option=option)
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
    """Return the two files, or each source with each target, looked up in the folder, for each name of corpora.

    Raises:
        UsageError: the arguments contradict each other; a file is a pipe.
        BitextmineError: no corpus of a language is in the folder, or more than one.
    """
    langs = {"--src": named.src, "--tgt": named.tgt}
    if named.corpora:
        if len(named.corpora) != 2 or max(map(len, langs.values())) > 1:
            given = " ".join([*map(str, named.corpora), *(f"{o} {lang}" for o in langs for lang in langs[o])])
            raise UsageError(
                f"expected two corpora, SRC and TGT, and at most one language of each, found {given}; for more targets "
                "look corpora up with --src, --tgt and --dir"
            )
        if named.name or os.fspath(named.directory) != ".":
            option = "--name" if named.name else "--dir"
            raise UsageError(
                f"{option} is for corpora that are looked up; both are given as files: leave it out"
            )
        src, tgt = (
            Corpus(_file(path, run, what), next(iter(langs[option]), None), option=option)
            for path, what, option in zip(named.corpora, ("SRC", "TGT"), langs, strict=True)
        )
        return [(src, tgt)]
    for option, side in (("--src", "source"), ("--tgt", "target")):
        if not langs[option]:
            raise UsageError(f"no {side} corpus: give {option}, or both corpora by name")
    pairs: list[Pair] = []
    for name in named.name or (None,):
        sources, targets = (
            [Corpus(Source.of(find_corpus(named.directory, lang, name), run), lang) for lang in side]
            for side in langs.values()
        )
        pairs += itertools.product(sources, targets)
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
