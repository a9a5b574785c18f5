"""Encoders by their name on the hub, from a small server that answers as the hub does."""

import hashlib
import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest

from bitextmine.encoder import load_encoder
from bitextmine.encoder.hub import hub_name

pytest.importorskip("huggingface_hub")

OLD, NEW = "a" * 40, "b" * 40
REPOSITORY = "some-org/tiny.model-v1.5"


@dataclass
class Hub:
    """repositories[name][commit] is a folder, refs[name][branch] a commit; asked: the paths that were asked for."""

    url: str = ""
    repositories: dict[str, dict[str, Path]] = field(default_factory=dict)
    refs: dict[str, dict[str, str]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    gated: set[str] = field(default_factory=set)

    def answer(self, path):
        self.asked.append(path)
        path = path.partition("?")[0]
        parts = path.strip("/").split("/")
        api = parts[:2] == ["api", "models"]
        name, rest = ("/".join(parts[2:4]), parts[4:]) if api else ("/".join(parts[:2]), parts[2:])
        if name not in self.repositories:
            return 404, {"X-Error-Code": "RepoNotFound"}, b"{}"
        if name in self.gated:
            return 403, {"X-Error-Code": "GatedRepo"}, b"{}"
        wanted = rest[1] if len(rest) > 1 else "main"
        commit = self.refs[name].get(wanted, wanted)
        folder = self.repositories[name].get(commit)
        if folder is None:
            return 404, {"X-Error-Code": "RevisionNotFound"}, b"{}"
        files = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
        if rest[0:1] == ["tree"]:
            entries = [
                {"type": "file", "path": n, "size": p.stat().st_size, "oid": oid(p)} for n, p in files.items()
            ]
            return 200, {"X-Repo-Commit": commit}, json.dumps(entries).encode()
        if rest[0:1] == ["resolve"]:
            file = files.get("/".join(rest[2:]))
            if file is None:
                return 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit}, b""
            return 200, {"X-Repo-Commit": commit, "ETag": f'"{oid(file)}"'}, file.read_bytes()
        info = {"id": name, "sha": commit, "private": False, "siblings": [{"rfilename": n} for n in files]}
        return 200, {"X-Repo-Commit": commit}, json.dumps(info).encode()


def oid(path):
    return hashlib.sha1(path.read_bytes()).hexdigest()


@pytest.fixture
def hub(tmp_path):
    found = Hub()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            status, headers, body = found.answer(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield found
    server.shutdown()
    thread.join()


@pytest.fixture
def published(hub, make_folder, tmp_path):
    """Two commits of a model, with files beside it that are not to be fetched."""
    for commit, dim in ((OLD, 16), (NEW, 32)):
        folder = make_folder(tmp_path / commit, 0, dim)
        (folder / "pytorch_model.bin").write_bytes(b"a pickle")
        (folder / "modeling_tiny.py").write_text("raise SystemExit('code of the folder was run')")
        (folder / "README.md").write_text("# card")
        for name in ("onnx/model.onnx", "onnx/config.json", "fp16/model.safetensors"):
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(b"{}")
        hub.repositories.setdefault(REPOSITORY, {})[commit] = folder
    hub.refs[REPOSITORY] = {"main": NEW, "v1": OLD}
    return hub


@pytest.fixture
def env(hub, tmp_path):
    return {"HF_ENDPOINT": hub.url, "HF_HOME": str(tmp_path / "hf"), "HF_HUB_OFFLINE": "0", "HF_TOKEN": ""}


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("org/name", ("org/name", None)),
        ("org/name@refs/pr/3", ("org/name", "refs/pr/3")),
        ("name", None),
        ("a/b/c", None),
        ("./a/b", None),
        ("org/name@", None),
        ("org name/x", None),
        ("here/there", None),
        ("here/missing", None),
        ("here/missing@main", ("here/missing", "main")),
    ],
)
def test_what_is_a_name_of_the_hub(model, name, tmp_path, monkeypatch):
    (tmp_path / "here" / "there").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert hub_name(model) == name


def test_a_model_of_the_hub(bitextmine, published, env, tmp_path):
    """It is fetched once, only what is read, and the commit is in signature and manifest."""
    (tmp_path / "text.en").write_text("the cat sat on the mat\nLe chat\n")
    embed = lambda model, **kwargs: bitextmine(  # noqa: E731
        "embed", "text.en", "--model", model, cwd=tmp_path, env={**env, **kwargs}
    )
    embed(REPOSITORY)
    assert json.loads((tmp_path / "text.en.json").read_text())["model_hash"] == f"{REPOSITORY}@{NEW}"
    vectors = np.load(tmp_path / "text.en.npy")
    own = load_encoder(published.repositories[REPOSITORY][NEW])
    np.testing.assert_allclose(vectors, own.encode(["the cat sat on the mat", "Le chat"]), atol=1e-3)
    fetched = {p.relative_to(tmp_path / "hf").as_posix() for p in (tmp_path / "hf").rglob("*") if p.is_file()}
    snapshot = f"/snapshots/{NEW}/"
    names = {name.partition(snapshot)[2] for name in fetched if snapshot in name}
    assert names == {"config.json", "model.safetensors", "tokenizer.model"}
    assert not any(
        "resolve" in path and path.endswith((".bin", ".py", ".md", ".onnx")) for path in published.asked
    )

    # In the cache now: no network is needed, and what is there is not made again.
    before = len(published.asked)
    assert "up to date" in embed(REPOSITORY, HF_HUB_OFFLINE="1").err
    assert len(published.asked) == before
    said = bitextmine("info", f"{REPOSITORY}@v1", cwd=tmp_path, env=env).out
    assert f"name: {REPOSITORY}\n" in said and f"hash: {REPOSITORY}@{OLD}\n" in said and "dim: 16\n" in said


def test_what_cannot_be_fetched(bitextmine, published, env, tmp_path):
    (tmp_path / "text.en").write_text("the cat\n")
    fails = lambda model, **kwargs: bitextmine.fails(  # noqa: E731
        "embed", "text.en", "--model", model, cwd=tmp_path, env={**env, **kwargs}
    )
    assert "no/such: no such folder, and the hub" in fails("no/such")
    published.repositories["org/empty"] = {NEW: tmp_path / "nothing"}
    published.refs["org/empty"] = {"main": NEW}
    (tmp_path / "nothing").mkdir()
    (tmp_path / "nothing" / "pytorch_model.bin").write_bytes(b"a pickle")
    (tmp_path / "nothing" / "README.md").write_text("# card")
    assert "org/empty: has no modules.json, config.json or *.spm" in fails("org/empty")
    published.repositories["org/gated"], published.refs["org/gated"] = {NEW: tmp_path / NEW}, {"main": NEW}
    published.gated.add("org/gated")
    assert "'hf auth login'" in fails("org/gated")
    said = fails(f"{REPOSITORY}@v1", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE is set" in said and f"'hf download {REPOSITORY} --revision v1'" in said
