"""Commands that write a file, killed with -9: nothing is left in the folder once the same command came to its end."""

import signal

import pytest


def names(folder):
    return {path.name for path in folder.iterdir()}


@pytest.fixture(scope="module")
def ready(bitextmine, tiny_model, parallel_text, tmp_path_factory):
    """A folder of two corpora, their embeddings, pairs and scored pairs."""
    folder = tmp_path_factory.mktemp("ready")
    parallel_text(folder, 300)
    model = ("--model", str(tiny_model))
    bitextmine("mine", "--src", "en", "--tgt", "fr", *model, "-o", "mined.tsv", cwd=folder)
    rows = [line.split("\t", 1)[1] for line in (folder / "mined.tsv").read_text().splitlines()]
    (folder / "pairs.tsv").write_text("".join(f"{row}\n" for row in rows))
    bitextmine("score", "pairs.tsv", *model, "-o", "scored.tsv", cwd=folder)
    return folder


@pytest.mark.parametrize(
    ("command", "needs"),
    [
        ("mine --src en --tgt fr --model MODEL -o out.tsv", "corpus.*"),
        ("score pairs.tsv --model MODEL -o out.tsv", "pairs.tsv"),
        ("filter scored.tsv -o out.tsv.gz --rejected rejected.tsv", "scored.tsv"),
        ("embed - --lang en --model MODEL --out out.npy", "corpus.en"),
    ],
    ids=lambda text: text.split()[0],
)
def test_the_next_run_leaves_nothing_behind(bitextmine, ready, tiny_model, tmp_path, command, needs):
    folder, hooks = tmp_path / "folder", tmp_path / "hooks"
    folder.mkdir()
    for path in ready.glob(needs):
        (folder / path.name).write_bytes(path.read_bytes())
    args = command.replace("MODEL", str(tiny_model)).split()
    stdin = (ready / "corpus.en").read_bytes() if "-" in args else b""
    hidden, before = 0, names(folder)
    count, died = 1, None
    while died is None or died.code != 0:
        died = bitextmine.dies(hooks, count, *args, cwd=folder, stdin=stdin)
        assert died.code in (0, -signal.SIGKILL)
        hidden += any(name.startswith(".") for name in names(folder))
        count += 1 if hidden < 3 else count // 2
    assert hidden, "no kill came while a file was being written"
    made = names(folder) - before
    assert made
    assert not [name for name in made if name.startswith(".") or name.endswith((".tmp", ".part"))]
