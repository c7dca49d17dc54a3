"""Fixtures of the tests of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from command_line import here

from tachograph.cli import main
from tachograph.cli.output import Output, to_json

if TYPE_CHECKING:
    from pathlib import Path
    from types import ModuleType


@pytest.fixture
def run(
    store_environment: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> str:
    """Start a run, and name its attempt in the environment as an eval would."""
    run_id = here(capsys, "run", "start", "demo", "--id", "job").stdout.strip()
    monkeypatch.setenv("TACHO_RUN_ID", run_id)
    monkeypatch.setenv("TACHO_EPOCH", "1")
    return run_id


@pytest.fixture(autouse=True)
def every_json_has_its_published_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compare all JSON that a command prints in this process with the model of the command."""
    invoke, document, line = main.invoke, Output.document, Output.document_line
    names: list[str | None] = []

    def noting(module: ModuleType, values: dict[str, Any], everywhere: dict[str, Any]) -> int:
        name = module.__name__.rpartition(".")[2].replace("_", "-")
        free = values.get("show") and (name == "run-batch" or not everywhere["json"])
        names.append(None if free else name)  # --show prints what a job recorded
        return invoke(module, values, everywhere)

    def check(value: Any) -> None:
        from tachograph.cli.shapes import SHAPES

        if names[-1] is not None:
            name = names[-1].replace("job-code", "job-run-code")
            SHAPES[name].validate_json(to_json(value))

    def checked_document(out: Output, value: Any) -> None:
        check(value)
        document(out, value)

    def checked_line(out: Output, value: Any) -> None:
        check(value)
        line(out, value)

    monkeypatch.setattr(main, "invoke", noting)
    monkeypatch.setattr(Output, "document", checked_document)
    monkeypatch.setattr(Output, "document_line", checked_line)
