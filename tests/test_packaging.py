"""The wheel: what is in it, and that it works in an environment of its own, away from the checkout."""

import email
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from bitextmine import __version__


@pytest.fixture(scope="module")
def sdist(root, tmp_path_factory):
    """Built from a copy of what belongs to it, so that nothing is left in the checkout; its folder, unpacked."""
    source = tmp_path_factory.mktemp("source")
    for name in ("pyproject.toml", "README.md", "LICENSE", "MANIFEST.in"):
        # Optimising takes most of the time of a build.
        (source / name).write_bytes((root / name).read_bytes().replace(b'"-O3"', b'"-O0"'))
    for folder in ("bitextmine", "train", "index", "mine", "tests"):
        shutil.copytree(
            root / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__", ".*", "*.so")
        )
    build = "from setuptools import build_meta; build_meta.build_sdist('dist')"
    run(sys.executable, "-c", build, cwd=source)
    (packed,) = (source / "dist").iterdir()
    shutil.unpack_archive(packed, source / "unpacked", filter="data")
    (folder,) = (source / "unpacked").iterdir()
    return folder


@pytest.fixture(scope="module")
def wheel(sdist):
    """Built from the source distribution, as pip does it where no wheel fits."""
    pip = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet"]
    run(*pip, "-w", "dist", ".", cwd=sdist)
    (built,) = (sdist / "dist").iterdir()
    return built


def run(*args, **kwargs):
    done = subprocess.run([str(a) for a in args], capture_output=True, check=False, **kwargs)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_wheel_holds_the_package_and_nothing_else(wheel, root):
    names = zipfile.ZipFile(wheel).namelist()
    folders = {name.split("/")[0] for name in names}
    assert folders == {"bitextmine", f"bitextmine-{__version__}.dist-info"}
    assert not [name for name in names if "__pycache__" in name or name.endswith((".pyc", ".part", ".tmp"))]
    modules = {str(p.relative_to(root)) for p in (root / "bitextmine").rglob("*.py")}
    listed = run("git", "ls-files", "bitextmine", cwd=root).split() if (root / ".git").exists() else []
    data = {name for name in listed if (root / name).exists() and not name.endswith((".c", ".h"))}
    assert modules | data | {"bitextmine/py.typed"} <= set(names)


def test_the_source_distribution_holds_the_c_files_and_their_headers(sdist, root):
    wanted = {
        str(path.relative_to(root)) for kind in ("*.c", "*.h") for path in (root / "bitextmine").rglob(kind)
    }
    assert not (sdist / "tests").exists(), "without conftest.py they would not run"
    assert len(wanted) >= 6 and not [name for name in wanted if not (sdist / name).is_file()]


@pytest.mark.skipif(not any(map(shutil.which, ("cc", "gcc", "clang"))), reason="no C compiler")
def test_the_wheel_holds_the_compiled_modules_and_they_load(wheel, installed, tmp_path):
    names = [Path(name).name for name in zipfile.ZipFile(wheel).namelist()]
    for module in ("_native", "_fused", "_dp", "_identify"):
        assert any(name.startswith(f"{module}.") and name.endswith((".so", ".pyd")) for name in names)
    code = "from bitextmine import compiled; [compiled.library(name) for name in compiled.MODULES]"
    env = {**os.environ, "BITEXTMINE_COMPILED": "require"}
    run(installed / "python", "-c", code, cwd=tmp_path, env=env)


def test_metadata(wheel, root):
    archive = zipfile.ZipFile(wheel)
    info = f"bitextmine-{__version__}.dist-info"
    metadata = email.message_from_bytes(archive.read(f"{info}/METADATA"))
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert metadata["Version"] == __version__ == project["version"]
    assert metadata["License-Expression"] == "MIT"
    assert {"gpu", "dev"} <= set(metadata.get_all("Provides-Extra"))
    assert f"{info}/licenses/LICENSE" in archive.namelist()
    assert "bitextmine = bitextmine.cli.program:main" in archive.read(f"{info}/entry_points.txt").decode()
    assert wheel.stat().st_size < 95_000_000, "the packaged encoders are to stay small"


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The folder of scripts of a new environment with the wheel in it; its dependencies come from this one."""
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    pip = [sys.executable, "-m", "pip", f"--python={python}", "install", "--no-deps", "--no-index", "--quiet"]
    run(*pip, wheel, cwd=home)
    # After the wheel's own files on the path, and not as site folders: .pth files in them (which may lead to an
    # editable install of the checkout) are not followed.
    dependencies = [path for path in sys.path if path.endswith(("site-packages", "dist-packages"))]
    (site / "dependencies.pth").write_text("".join(f"{path}\n" for path in dependencies))
    return home / "bin"


def test_the_installed_command_mines_with_the_encoder_of_the_wheel(installed, tmp_path):
    where = run(installed / "python", "-c", "import bitextmine; print(bitextmine.__file__)", cwd=tmp_path)
    assert where.startswith(str(installed.parent))
    assert run(installed / "bitextmine", "--version", cwd=tmp_path) == f"bitextmine {__version__}\n"
    english = "Good morning.\nThe train to Paris leaves at noon.\nI do not eat meat.\n"
    french = "Je ne mange pas de viande.\nBonjour.\nLe train pour Paris part à midi.\n"
    (tmp_path / "corpus.en").write_text(english)
    (tmp_path / "corpus.fr").write_text(french)
    mine = ("mine", "--src", "en", "--tgt", "fr", "--threshold", "none")
    mined = run(installed / "bitextmine", *mine, cwd=tmp_path)
    found = {tuple(line.split("\t")[1:]) for line in mined.splitlines()}
    assert ("The train to Paris leaves at noon.", "Le train pour Paris part à midi.") in found


USER = '''
"""Every function of the stages, as a user calls it."""

from pathlib import Path

import bitextmine
from bitextmine.run import Run

encoder: bitextmine.Encoder = bitextmine.load_encoder("europe5")
sentences: list[str] = [sentence.text for sentence in bitextmine.split("book.en.txt", by_language=True)]
options = bitextmine.MiningOptions(threshold="none")
found: bitextmine.Bitext = bitextmine.mine(["a"], ["b"], model=encoder, options=options, k=8, run=Run("cpu"))
best: list[tuple[str, str]] = [(pair.src, pair.tgt) for pair in found]
for link in bitextmine.align(sentences, "book.fr.txt", model=encoder, run=Run(errors="replace")):
    best.append((link.src, link.tgt))
columns = bitextmine.ScoreOptions(columns=("cosine", "copy"), k=8)
shape: tuple[int, int] = bitextmine.score(best, options=columns, device="cpu").shape
kept: bitextmine.FilteredPairs = bitextmine.filter(best, min={"cosine": 0.5}, duplicates="near")
counts: dict[str, int] = kept.counts
rows: int = bitextmine.report("pairs.tsv", Path("page.html"), threshold=0.5)
model: Path = bitextmine.train("model", pairs=["a.en-fr.tsv"], settings={"train.epochs": 3}, run=Run("cpu"))
adapted: Path = bitextmine.adapt("a.en", "a.fr", "adapted", model=model, rounds=2).folder
folder: Path = bitextmine.export(adapted, "out")
bitextmine.train(1)  # an error
bitextmine.mine(["a"], ["b"], margin="nosuch")  # another
'''


def test_types_reach_the_code_of_users(installed, tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(USER)
    # The libraries' own types, which take most of the time, matter to no signature here.
    skipped = "[mypy]\n[mypy-torch.*,scipy.*,pandas.*,matplotlib.*]\nfollow_imports = skip\n"
    (tmp_path / "mypy.ini").write_text(skipped)
    strict = [sys.executable, "-m", "mypy", "--strict", "--python-executable"]
    done = subprocess.run(
        [*strict, installed / "python", "user.py"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    first, second, summary = done.stdout.splitlines()
    lines = USER.count("\n")
    assert f'user.py:{lines - 1}: error: Argument 1 to "train"' in first
    assert f'user.py:{lines}: error: Argument "margin" to "mine"' in second
    assert summary.startswith("Found 2 errors")
