"""An installed Tachograph: a wheel of this checkout in an environment of its own, as users have it.

An editable install starts slower, so it would say nothing about commands. The environment stays
in the results and is used again while the code is the same.
"""

from __future__ import annotations

import hashlib
import os
import py_compile
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CHECKOUT = Path(__file__).parent.parent
ENVIRONMENT = CHECKOUT / "benchmarks" / "results" / "installed"
STAMP = "code.stamp"
FILES = ("pyproject.toml", "README.md", "LICENSE", "constraints.txt")
FOLDERS = ("tachograph", "domain", "projections", "infra", "cli")
BIN = "Scripts" if os.name == "nt" else "bin"


class InstallError(Exception):
    """The wheel could not be built or installed."""


def environment() -> Path:
    """Return an environment that holds this code, compiled. Raises InstallError."""
    stamp = ENVIRONMENT / STAMP
    digest = code()
    if not stamp.exists() or stamp.read_text(encoding="ascii") != digest:
        shutil.rmtree(ENVIRONMENT, ignore_errors=True)
        _run(sys.executable, "-m", "venv", str(ENVIRONMENT))
        # The script that an old pip makes for a command imports `re`, today's does not.
        _run(program("python", ENVIRONMENT), *("-m", "pip", "install", "-qq", "-U", "pip"))
        with tempfile.TemporaryDirectory() as scratch:
            _run(
                program("python", ENVIRONMENT),
                *("-m", "pip", "install", "-qq", "--disable-pip-version-check"),
                *("-c", str(CHECKOUT / "constraints.txt"), str(_wheel(Path(scratch)))),
            )
        _run(program("python", ENVIRONMENT), "-m", "compileall", "-q", str(ENVIRONMENT))
        stamp.write_text(digest, encoding="ascii")
    return ENVIRONMENT


def program(name: str, environment: Path) -> str:
    """Return the path of a program of an environment."""
    return str(environment / BIN / name)


def compiled(script: Path, folder: Path) -> str:
    """Compile a script into a folder and return the path of its byte code, which can be run."""
    target = folder / f"{script.stem}.pyc"
    py_compile.compile(str(script), str(target), doraise=True)
    return str(target)


def clean_environment(home: Path, **variables: str) -> dict[str, str]:
    """Return variables for a child: nothing of the caller's that would change how Python runs."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TZ") if name in os.environ}
    return {**kept, "HOME": str(home), **variables}


def code() -> str:
    """Return what tells this code, with this interpreter, from any other."""
    digest = hashlib.sha256(sys.version.encode())
    for path in _sources():
        digest.update(f"{path.relative_to(CHECKOUT)}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _sources() -> list[Path]:
    files = [CHECKOUT / name for name in FILES]
    for folder in FOLDERS:
        # Links of the checkout are not followed: they lead to the other folders.
        files += [path for path in (CHECKOUT / folder).rglob("*") if _is_source(path)]
    return sorted(files)


def _is_source(path: Path) -> bool:
    return path.suffix == ".py" or path.name == "py.typed"


def _wheel(scratch: Path) -> Path:
    """Build a wheel from a copy of the sources: a build leaves files behind."""
    copy = scratch / "sources"
    for path in _sources():
        target = copy / path.relative_to(CHECKOUT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, target)
    _run(
        sys.executable,
        *("-m", "pip", "wheel", "-qq", "--disable-pip-version-check", "--no-deps"),
        *("--no-build-isolation", "--wheel-dir", str(scratch), str(copy)),
    )
    (wheel,) = scratch.glob("*.whl")
    return wheel


def _run(*command: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines()
        raise InstallError(said[-1] if said else f"{command[:3]} failed")
