"""The filter class for OpusFilter and the filter definitions for OpusCleaner, with the real packages."""

import gzip
import os
import subprocess
import sysconfig

import pytest

PAIRS = [
    ("The museum is free on Sundays.", "Le musée est gratuit le dimanche."),
    ("Restart the server first.", "Elle aime beaucoup les chats noirs de sa voisine."),
    ("Room 12 is free.", "La chambre 12 est libre."),
    ("Room 12 is free.", "La chambre 13 est libre."),
    ("Copied and not translated", "Copied and not translated"),
    ("", ""),
    ("Where is the station?", "Où est la gare ?"),
]


class TestOpusFilter:
    @pytest.fixture(autouse=True)
    def _library(self):
        pytest.importorskip("opusfilter")

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
        path = {**os.environ, "PATH": f"{scripts}{os.pathsep}{os.environ['PATH']}"}
        done = subprocess.run(
            command, shell=True, input=text, capture_output=True, text=True, check=True, env=path
        )
        kept = [f"{src}\t{tgt}" for at, (src, tgt) in enumerate(PAIRS) if at not in lost]
        assert done.stdout.splitlines() == kept
