"""Run pyright and refuse a success that left files unread. Changes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def expected_files() -> int:
    """Count the Python files that the configuration promises to check."""
    with (ROOT / "pyproject.toml").open("rb") as file:
        included = tomllib.load(file)["tool"]["pyright"]["include"]
    return len({path.resolve() for folder in included for path in (ROOT / folder).rglob("*.py")})


def run_pyright() -> dict[str, Any]:
    """Run pyright on the whole project with this interpreter and return its report."""
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonpath", sys.executable]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    try:
        report: dict[str, Any] = json.loads(run.stdout)
    except json.JSONDecodeError:
        sys.exit(f"pyright did not run:\n{run.stdout}{run.stderr}")
    return report


def main() -> int:
    """Print what pyright found; return 1 for an error or an unread file."""
    report, expected = run_pyright(), expected_files()
    for finding in report["generalDiagnostics"]:
        line = finding.get("range", {"start": {"line": 0}})["start"]["line"] + 1
        print(f"{finding['file']}:{line}: {finding['severity']}: {finding['message']}")
    found = report["summary"]["filesAnalyzed"]
    if found != expected:
        # pyright does not descend into linked folders, and reports success all the same.
        print(f"pyright read {found} files of {expected}; list each linked folder in `include`")
    return int(report["summary"]["errorCount"] > 0 or found != expected)


if __name__ == "__main__":
    sys.exit(main())
