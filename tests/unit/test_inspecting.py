"""A recorded file is what it was, or it is said what it is now."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from workbench import Workbench

from tachograph.inspecting import artifacts
from tachograph.measuring import measure

if TYPE_CHECKING:
    from pathlib import Path

    from tachograph.domain.event import Cause
    from tachograph.domain.run import Run


def recorded(*paths: Path) -> Run:
    """Return a run that has recorded files as they are now."""
    session = Workbench().start()
    for path in paths:
        try:
            size, sha256 = measure(path)
        except OSError:
            size, sha256 = 1, "ab"
        name, fields = path.name[:9], {"path": str(path), "size": size, "sha256": sha256}
        session.execute(partial(record, name, fields))
    return session.run


def record(name: str, fields: dict[str, Any], run: Run, cause: Cause) -> None:
    run.record_artifact(cause, name, **fields)


def states(run: Run) -> dict[str, str]:
    return {each.name: each.state for each in artifacts(run)}


def test_each_file_has_its_state(tmp_path: Path) -> None:
    for name in ("changed", "same"):
        (tmp_path / name).write_text("first")
    run = recorded(tmp_path / "changed", tmp_path / "same", tmp_path / "gone")
    (tmp_path / "changed").write_text("other")

    assert states(run) == {"changed": "changed", "same": "ok", "gone": "missing"}


def test_a_file_below_a_file_is_missing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")

    assert states(recorded(tmp_path / "file" / "below")) == {"below": "missing"}


def test_a_path_that_the_system_refuses_is_unreadable(tmp_path: Path) -> None:
    assert states(recorded(tmp_path / ("x" * 5000))) == {"xxxxxxxxx": "unreadable"}
