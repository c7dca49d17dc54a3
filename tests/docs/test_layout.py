"""Folders, links, layers, packaging and the text of the project are what the design says."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tokenize
import venv
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from project_files import LINKED, ROOT, configuration, modules, shared_files

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MODULES = [pytest.param(path, id=name) for name, path in modules().items()]
MODULE_NAMES = {path: name for name, path in modules().items()}

# The two inner folders know the standard library and these; the others know any dependency but
# those that belong to one folder alone.
INNER = {
    "domain": ("tachograph.domain",),
    "projections": ("tachograph.projections", "tachograph.domain"),
}
ONLY_IN = {"click": "cli", "rich": "cli", "lmdb": "infra", "msgpack": "infra"}

# Text that belongs to one machine or one moment. None of these patterns matches its own text.
NOT_FOR_A_CLONE = (
    re.compile(r"(pypi|pythonhosted|npmjs|debian)\.org"),
    re.compile(r"(?<![\w.~])/(work|root)/"),
)
FUNCTION_OR_ANNOTATION = ast.FunctionDef | ast.AsyncFunctionDef | ast.AnnAssign
NOTE_TO_SELF = re.compile(r"\b(TO(?:DO)|FIX(?:ME)|X(?:XX))\b")


def run_command(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a command whose Python, if it is one, sees only its own environment."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def run_python(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run this interpreter."""
    return run_command(sys.executable, *arguments, cwd=cwd)


# Root folders and links


@pytest.mark.parametrize("folder", LINKED)
def test_a_root_folder_is_not_importable_under_its_own_name(folder: str) -> None:
    run = run_python("-c", f"import {folder}", cwd=ROOT)

    assert run.returncode == 1
    assert f"import tachograph.{folder}, not {folder}" in run.stderr


@pytest.mark.parametrize("folder", LINKED)
def test_a_root_folder_is_a_package_of_tachograph(folder: str) -> None:
    module = importlib.import_module(f"tachograph.{folder}")

    assert (ROOT / folder / "__init__.py").samefile(module.__file__ or "")


@pytest.mark.skipif(os.name == "nt", reason="git may write links as plain files on Windows")
@pytest.mark.parametrize("folder", LINKED)
def test_a_link_shows_tools_the_root_folder_inside_the_package(folder: str) -> None:
    assert Path("..", folder) == (ROOT / "tachograph" / folder).readlink()


def test_there_is_no_other_link() -> None:
    links = {path.relative_to(ROOT).as_posix() for path in shared_files() if path.is_symlink()}

    assert {f"tachograph/{folder}" for folder in LINKED} == links


def test_every_package_is_listed_for_the_wheel() -> None:
    """An editable install finds a package that is not listed; a wheel lacks it."""
    packages = {name for name, path in modules().items() if path.name == "__init__.py"}
    folders = {path.parent for path in modules().values()}

    assert set(configuration()["tool"]["setuptools"]["packages"]) == packages
    assert [folder for folder in folders if not (folder / "__init__.py").is_file()] == []


def test_pyright_is_told_of_every_link() -> None:
    """It does not follow links that it is not told of, and reports success."""
    included = configuration()["tool"]["pyright"]["include"]

    assert {f"tachograph/{folder}" for folder in LINKED} <= set(included)


# Layers


def test_imports_go_one_way() -> None:
    command = "from importlinter.cli import lint_imports_command as lint; lint()"
    run = run_python("-c", command, "--no-logo", "--no-cache", cwd=ROOT)

    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("path", MODULES)
def test_a_module_imports_only_what_its_folder_may(path: Path) -> None:
    area = area_of(MODULE_NAMES[path])
    names = {name for name in imported_names(path) if top(name) not in sys.stdlib_module_names}
    if area in INNER:
        wrong = {name for name in names if not f"{name}.".startswith(inner_prefixes(area))}
    else:
        wrong = {name for name in names if ONLY_IN.get(top(name), area) != area}

    assert wrong == set()


def test_every_imported_package_is_a_declared_dependency() -> None:
    project = configuration()["project"]
    extras = [line for lines in project["optional-dependencies"].values() for line in lines]
    declared = {distribution(line) for line in (*project["dependencies"], *extras)}
    imported = {top(name) for path in modules().values() for name in imported_names(path)}

    assert imported - sys.stdlib_module_names - {"tachograph"} <= declared


def area_of(module: str) -> str:
    """Name the folder of a module: `domain` of tachograph.domain.run, `tachograph` of the rest."""
    second = module.split(".")[1:2]
    return second[0] if second and second[0] in LINKED else "tachograph"


def inner_prefixes(area: str) -> tuple[str, ...]:
    """Return how the names of the modules start that an inner folder may import."""
    return tuple(f"{package}." for package in INNER[area])


def imported_names(path: Path) -> Iterator[str]:
    """Yield what a module imports, inside functions as well, but not from its own folder."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module


def top(name: str) -> str:
    """Return the first part of a dotted name."""
    return name.partition(".")[0]


def distribution(requirement: str) -> str:
    """Return the name in a requirement, as it is imported."""
    return re.split(r"[^\w.-]", requirement)[0].replace("-", "_").lower()


# Modules


@pytest.mark.parametrize("path", MODULES)
def test_a_module_says_what_it_is_for(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(path.read_bytes()))

    assert docstring is not None
    assert docstring.splitlines()[0].endswith(".")


@pytest.mark.parametrize("path", MODULES)
def test_a_module_postpones_its_annotations(path: Path) -> None:
    """One with nothing to annotate need not."""
    tree = ast.parse(path.read_bytes())
    annotated = any(isinstance(node, FUNCTION_OR_ANNOTATION) for node in ast.walk(tree))
    postponed = any(
        isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body
    )

    assert postponed or not annotated


# Wheel and sdist


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build an sdist from what a clone would get, and the wheel from the sdist, offline."""
    work = tmp_path_factory.mktemp("wheel")
    for path in shared_files():
        target = work / "clone" / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    (sdist,) = build("build_sdist", work / "clone", work)
    with tarfile.open(sdist) as archive:
        linked = [member.name for member in archive if not (member.isfile() or member.isdir())]
        archive.extractall(work / "sdist", filter="data")

    assert linked == []
    (unpacked,) = (work / "sdist").iterdir()
    (wheel,) = build("build_wheel", unpacked, work)
    return wheel


def build(hook: str, source: Path, target: Path) -> Iterable[Path]:
    """Call a hook of the build backend and return what it made."""
    command = f"import sys; from setuptools import build_meta; build_meta.{hook}(sys.argv[1])"
    run = run_python("-c", command, str(target), cwd=source)

    assert run.returncode == 0, run.stdout + run.stderr
    return target.glob("*.tar.gz" if hook == "build_sdist" else "*.whl")


def test_the_wheel_holds_every_module_and_nothing_else(wheel: Path) -> None:
    expected = {
        Path(*name.split("."), "__init__.py" if path.name == "__init__.py" else "").as_posix()
        + ("" if path.name == "__init__.py" else ".py")
        for name, path in modules().items()
    }
    with zipfile.ZipFile(wheel) as archive:
        held = {name for name in archive.namelist() if ".dist-info/" not in name}
        modes = {member.external_attr >> 28 for member in archive.infolist()}

    assert expected | {"tachograph/py.typed"} == held
    assert modes <= {0, 8}  # regular files: the upper four bits of a mode, 10 for a link


def test_the_wheel_works_where_the_checkout_is_not(wheel: Path, tmp_path: Path) -> None:
    """Installed into a new environment that borrows only the dependencies of this one."""
    folder = tmp_path / "environment"
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    scripts = folder / ("Scripts" if os.name == "nt" else "bin")
    pip = ("-m", "pip", "--python", str(scripts / "python"), "--disable-pip-version-check")
    installed = run_python(*pip, "install", "--no-deps", "--no-index", str(wheel), cwd=tmp_path)

    assert installed.returncode == 0, installed.stdout + installed.stderr
    (site_packages,) = folder.glob("[Ll]ib/**/site-packages")
    borrowed = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    (site_packages / "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    where = "import tachograph.domain as d; print(d.__file__)"
    imported = run_command(scripts / "python", "-c", where, cwd=tmp_path)
    helped = run_command(scripts / "tacho", "--help", cwd=tmp_path)

    assert str(site_packages / "tachograph" / "domain" / "__init__.py") == imported.stdout.strip()
    assert helped.returncode == 0, helped.stderr
    assert "Usage: tacho" in helped.stdout


# Text


def test_no_file_names_a_registry_or_a_place_on_one_machine() -> None:
    """A clone must mean the same everywhere."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in shared_files()
        for number, line in enumerate(text_lines(path), start=1)
        if str(ROOT) in line or any(pattern.search(line) for pattern in NOT_FOR_A_CLONE)
    ]

    assert found == []


def test_no_file_holds_a_note_to_self() -> None:
    """Work that is left stands in an issue, not in a comment."""
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for path in shared_files()
        for number, line in (comments(path) if path.suffix == ".py" else numbered(path))
        if NOTE_TO_SELF.search(line)
    ]

    assert found == []


def test_constraints_pin_versions_and_nothing_else() -> None:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()

    assert [line for line in lines if not re.fullmatch(r"[\w.-]+==[\w.]+", line)] == []
    assert sorted(lines, key=lambda line: line.split("==")[0].lower()) == lines


def text_lines(path: Path) -> list[str]:
    """Return the lines of a text file; a link and a binary file have none."""
    if path.is_symlink():
        return []
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        return []


def numbered(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number."""
    yield from enumerate(text_lines(path), start=1)


def comments(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each comment of a module with its line; a string may speak of such notes."""
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type == tokenize.COMMENT:
                yield token.start[0], token.string
