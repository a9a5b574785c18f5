"""The filter class for OpusFilter and the filter definitions for OpusCleaner, with the real packages."""

import gzip
import math
import os
import subprocess
import sysconfig
from pathlib import Path

import pytest

import bitextmine

PAIRS = [
    ("The museum is free on Sundays.", "Le musée est gratuit le dimanche."),
    ("Restart the server first.", "Elle aime beaucoup les chats noirs de sa voisine."),
    ("Room 12 is free.", "La chambre 12 est libre."),
    ("Room 12 is free.", "La chambre 13 est libre."),
    ("Copied and not translated", "Copied and not translated"),
    ("", ""),
    ("Where is the station?", "Où est la gare ?"),
]


def kept_by_the_command(tmp_path, *options):
    """The pairs that `score | filter` keeps."""
    script = Path(sysconfig.get_path("scripts")) / "bitextmine"
    text = "".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS)
    for args in (("score",), ("filter", "--duplicates", "none", *options)):
        done = subprocess.run([script, *args], input=text, capture_output=True, text=True, check=True)
        text = done.stdout
    return [tuple(line.split("\t")[:2]) for line in text.splitlines()[1:]]


class TestOpusFilter:
    @pytest.fixture(autouse=True)
    def _library(self):
        pytest.importorskip("opusfilter")

    def test_scores_are_those_of_score(self):
        from bitextmine.opusfilter import BitextFilter

        names = ("cosine", "margin", "numbers", "tgt_lang")
        made = BitextFilter(preset="none", columns=names, window=3)
        found = list(made.score(iter(PAIRS)))
        wanted = bitextmine.score(PAIRS, columns=names, window=3)
        assert [list(row) for row in found] == [list(names)] * len(PAIRS)
        for name in names:
            for row, value in zip(found, wanted[name], strict=True):
                assert row[name] == value or (math.isnan(row[name]) and math.isnan(value))

    def test_it_keeps_what_filter_keeps(self, tmp_path):
        from bitextmine.opusfilter import BitextFilter

        made = BitextFilter(languages=["en", "fr"])
        kept = list(made.filter(PAIRS))
        assert kept == [PAIRS[0], PAIRS[2], PAIRS[6]]
        assert list(made.filterfalse(PAIRS)) == [pair for pair in PAIRS if pair not in kept]
        assert [made.accept(score) for score in made.score(PAIRS)] == [pair in kept for pair in PAIRS]
        limits = BitextFilter(min={"quality": 0.5}, max={"length_ratio": 1.3})
        options = ("--preset", "none", "--min", "quality=0.5", "--max", "length_ratio=1.3")
        assert list(limits.filter(PAIRS)) == kept_by_the_command(tmp_path, *options)

    def test_a_configuration_runs(self, root, tmp_path):
        """That of the page."""
        from ruamel.yaml import YAML

        page = (root / "mine/other-tools.md").read_text(encoding="utf-8")
        block = page.split("```yaml\n")[1].partition("```")[0]
        configuration = YAML(typ="safe").load(block)
        configuration["common"]["output_directory"] = str(tmp_path)
        for side, lang in enumerate(("en", "fr")):
            with gzip.open(tmp_path / f"all.{lang}.gz", "wt", encoding="utf-8") as file:
                file.writelines(f"{pair[side]}\n" for pair in PAIRS)
        pytest.importorskip("opusfilter.opusfilter", exc_type=ImportError).OpusFilter(
            configuration
        ).execute_steps()
        with gzip.open(tmp_path / "clean.fr.gz", "rt", encoding="utf-8") as file:
            assert file.read().splitlines() == [PAIRS[0][1], PAIRS[2][1], PAIRS[6][1]]

    @pytest.mark.parametrize(
        "wrong", [{"min": {"bleu": 1}}, {"preset": "wild"}, {"languages": ["en"]}, {"k": 0}]
    )
    def test_mistakes_are_those_of_a_configuration(self, wrong):
        from opusfilter import ConfigurationError

        from bitextmine.opusfilter import BitextFilter

        with pytest.raises(ConfigurationError, match="BitextFilter"):
            BitextFilter(**wrong)


def test_opuscleaner_loads_the_filters_and_they_filter(root):
    filtering = pytest.importorskip("opuscleaner.filtering", exc_type=ImportError)
    definitions = {
        found.name: found
        for found in filtering.list_filters(str(root / "bitextmine/scoring/opuscleaner/*.json"))
    }
    assert set(definitions) == {f"bitextmine_{name}" for name in ("margin", "cosine", "quality", "language")}
    filtering.set_global_filters(definitions.values())
    scripts = sysconfig.get_path("scripts")
    text = "".join(f"{src}\t{tgt}\n" for src, tgt in PAIRS)
    for name, given, lost in (
        ("bitextmine_cosine", {}, [1, 5]),
        ("bitextmine_language", {"SRC": "en", "TGT": "fr", "MIN": 0.3}, [4]),
        ("bitextmine_quality", {"MIN": 0.5}, [1, 3, 4, 5]),
    ):
        step = filtering.FilterStep(filter=name, parameters=given, language=None)
        command = filtering.filter_format_command(definitions[name], step, ["en", "fr"])
        done = subprocess.run(
            command,
            shell=True,
            input=text,
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"},
        )
        assert done.returncode == 0, done.stderr
        kept = [f"{src}\t{tgt}" for at, (src, tgt) in enumerate(PAIRS) if at not in lost]
        assert done.stdout.splitlines() == kept
    step = filtering.FilterStep(
        filter="bitextmine_cosine", parameters={"MODEL": "no-such-folder"}, language=None
    )
    command = filtering.filter_format_command(definitions["bitextmine_cosine"], step, ["en", "fr"])
    assert subprocess.run(
        command, shell=True, input=text, capture_output=True, text=True, check=False
    ).returncode
