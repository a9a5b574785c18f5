"""Commands on files in shared storage: a folder by its file:// URL, and S3 on a local server."""

import json
from pathlib import Path

import pytest

fsspec = pytest.importorskip("fsspec")


@pytest.fixture
def here(tmp_path, parallel_text):
    """A folder with two corpora, one of them also compressed."""
    zstandard = pytest.importorskip("zstandard")
    folder = tmp_path / "here"
    folder.mkdir()
    parallel_text(folder, 80, 30)
    text = (folder / "corpus.fr").read_bytes()
    (folder / "corpus.fr.zst").write_bytes(zstandard.compress(text))
    return folder


@pytest.fixture
def there(tmp_path, here):
    """The URL of a folder with copies of them."""
    folder = tmp_path / "there"
    folder.mkdir()
    for name in ("corpus.en", "corpus.fr.zst"):
        (folder / name).write_bytes((here / name).read_bytes())
    return f"file://{folder}"


@pytest.fixture
def env(tmp_path):
    """An environment with its own folder for temporary files."""
    (tmp_path / "tmp").mkdir()
    return {"TMPDIR": str(tmp_path / "tmp")}


def test_urls_give_what_files_give(bitextmine, tiny_model, here, there, env, tmp_path):
    options = ("--model", tiny_model, "--threshold", "none", "--no-clean")
    bitextmine("mine", "corpus.en", "corpus.fr", *options, "-o", "mined.jsonl.gz", cwd=here)
    bitextmine("score", "mined.jsonl.gz", "--columns", "length_ratio", "-o", "scored.tmx", cwd=here)
    bitextmine("filter", "scored.tmx", "--max", "length_ratio=1.2", "-o", "clean.tsv", cwd=here)
    files = f"{there}/corpus.en", f"{there}/corpus.fr.zst"
    cache = ("--cache", "cache")
    bitextmine("mine", *files, *options, *cache, "-o", f"{there}/mined.jsonl.gz", cwd=tmp_path, env=env)
    score = ("score", f"{there}/mined.jsonl.gz", "--columns", "length_ratio")
    bitextmine(*score, "-o", f"{there}/scored.tmx", cwd=tmp_path, env=env)
    rules = ("--max", "length_ratio=1.2")
    bitextmine("filter", f"{there}/scored.tmx", *rules, "-o", f"{there}/clean.tsv", cwd=tmp_path, env=env)
    folder = Path(there.removeprefix("file://"))
    for name in ("mined.jsonl.gz", "scored.tmx", "clean.tsv"):
        assert (folder / name).read_bytes() == (here / name).read_bytes(), name
    ours = json.loads((folder / "mined.jsonl.gz.json").read_text())
    assert ours["rows"]["src"]["corpus"] == "corpus.en"
    assert list(Path(env["TMPDIR"]).iterdir()) == []
    assert not list(tmp_path.glob("*:*")), "no folder is called file:"
    assert sorted(path.suffix for path in (tmp_path / "cache").iterdir()) == [".json"] * 2 + [".npy"] * 2
    again = bitextmine(
        "mine", *files, *options, *cache, "-o", f"{there}/mined.jsonl.gz", cwd=tmp_path, env=env
    )
    assert again.err.count("up to date") == 2


def test_urls_where_a_local_path_is_needed(bitextmine, there, here, env):
    run = {"cwd": here, "env": env}
    told = bitextmine("embed", f"{there}/corpus.en", code=2, **run).err
    assert "they need a local folder: pass --cache FOLDER" in " ".join(told.split())
    assert "--cache" in bitextmine("mine", f"{there}/corpus.en", "corpus.fr", code=2, **run).err
    told = " ".join(bitextmine("embed", "corpus.en", "--out", "s3://bucket/x.npy", code=2, **run).err.split())
    assert "expected a local path, not a URL" in told
    assert "copy it to this machine first" in bitextmine.fails("index", f"{there}/corpus.npy", **run)
    assert bitextmine.fails("info", f"{there}/none.en", **run).endswith(
        f"{there}/none.en: no such file; check the bucket and the name"
    )
    assert (
        "is the input itself"
        in bitextmine("filter", f"{there}/corpus.en", "-o", f"{there}/corpus.en", code=2, **run).err
    )
    assert sorted(path.name for path in here.iterdir()) == ["corpus.en", "corpus.fr", "corpus.fr.zst"]


@pytest.fixture(scope="module")
def s3():
    """A local server with the bucket "crawl": the environment that a driver needs."""
    pytest.importorskip("s3fs")
    server = pytest.importorskip("moto.server").ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    server.start()
    host, port = server.get_host_and_port()
    known = {
        "AWS_ACCESS_KEY_ID": "someone",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": f"http://{host}:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_MAX_ATTEMPTS": "1",
    }
    try:
        bucket(known).mkdir("crawl")
        yield known
    finally:
        server.stop()


def bucket(s3):
    import s3fs

    return s3fs.S3FileSystem(
        key=s3["AWS_ACCESS_KEY_ID"],
        secret=s3["AWS_SECRET_ACCESS_KEY"],
        endpoint_url=s3["AWS_ENDPOINT_URL"],
        use_listings_cache=False,
    )


def test_mining_in_a_bucket(bitextmine, tiny_model, here, s3, env):
    run = {"cwd": here, "env": {**env, **s3}}
    fs = bucket(s3)
    for name in ("corpus.en", "corpus.fr.zst"):
        fs.put_file(str(here / name), f"crawl/2026/{name}")
    options = ("--model", tiny_model, "--threshold", "none", "--no-clean")
    bitextmine("mine", "corpus.en", "corpus.fr", *options, "-o", "mined.tsv.zst", **run)
    found = ("--src", "en", "--tgt", "fr", "--dir", "s3://crawl/2026", "--cache", "cache")
    bitextmine("mine", *found, *options, "-o", "s3://crawl/out/{src}-{tgt}.tsv.zst", **run)
    assert fs.cat_file("crawl/out/en-fr.tsv.zst") == (here / "mined.tsv.zst").read_bytes()
    bitextmine(
        "score", "s3://crawl/out/en-fr.tsv.zst", "--columns", "copy", "-o", "s3://crawl/out/s.tsv", **run
    )
    bitextmine("score", "mined.tsv.zst", "--columns", "copy", "-o", "s.tsv", **run)
    assert fs.cat_file("crawl/out/s.tsv") == (here / "s.tsv").read_bytes()
    assert sorted(fs.ls("crawl/out")) == [
        f"crawl/out/{n}" for n in ("en-fr.tsv.zst", "en-fr.tsv.zst.json", "s.tsv")
    ]
