"""`tacho run artifacts`: the files that a run made, and the files that tell of it."""

from __future__ import annotations

from tachograph.cli.exit_codes import FAILURE, OK
from tachograph.cli.finding import load_run
from tachograph.cli.opening import open_store
from tachograph.cli.options import Argument, Option, Spec, UsageError, flag
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.domain.run import Run

SPEC = Spec(
    "Show the files that a run made, and write the files that tell of it.",
    Argument("run", "The run; a prefix of its id will do.", required=False, complete="run"),
    Option("--write", "Write its artifact files below this folder.", metavar="DIR",
           complete="path"),
    flag("--update", "Write them below the folder that the setting `artifacts` names."),
    flag("--all", "Of all runs: bring the whole folder up to the log."),
    details="""Reads each file that the run recorded and compares its size and SHA-256. Ends with 1
when one is missing, changed or unreadable.

The artifact files are summary.json, events.jsonl, report.md and checkpoint.json, in
YYYYMMDD/job-runs/ID of a folder; of an orchestrator run its summary and validation. They hold what
the log holds: delete them, and they can be written again, byte for byte. Where the setting
`artifacts` names a folder, `run exec`, Python jobs and the watchdog keep them up to date. --write
and --update compare every file whole, with --all those of every run; what retention has let go
comes back only for a run that is named.

\b
  tacho run artifacts job-distill-0dc845e1 --write /tmp/look
  tacho run artifacts --all --update""",
)  # fmt: skip


def run(params: Params, out: Output) -> int:
    """Write what is to be written, and print each file with its state."""
    if bool(params.all) == (params.run is not None):
        raise UsageError("Which run? Name one, or say --all with --write or --update.")
    if params.write is not None and params.update:
        raise UsageError("--write and --update exclude each other.")
    writes = params.write is not None or params.update
    if params.all and not writes:
        raise UsageError("--all goes with --write DIR or --update.")
    services = open_store(out, read_only=not writes)
    if params.all:
        return _write_all(services, params, out)
    recorded = load_run(services, params.run, out)
    root = _root(services, params)
    if writes:
        from tachograph.artifact_trees import layout

        layout(services, root or "").refresh(recorded.id, thorough=True)
        recorded = services.repository.get(recorded.id) or recorded
    return _show(recorded, root, out)


def _root(services: Services, params: Params) -> str | None:
    from tachograph.cli.artifact_roots import needed, root_of

    return needed(services) if params.update else root_of(services, params.write)


def _write_all(services: Services, params: Params, out: Output) -> int:
    from tachograph.artifact_trees import layout
    from tachograph.catching_up import catch_up
    from tachograph.cli.bars import Bar

    root = _root(services, params) or ""
    with Bar(out, "write") as bar:
        wrong = catch_up(layout(services, root), services.actor.now_us(), bar, thorough=True)
    if out.json:
        problems = [{"jobRunId": run_id, "problem": text} for run_id, text in wrong]
        out.document({"root": root, "problems": problems})
    else:
        for run_id, text in wrong:
            out.warn(f"{run_id}: {text}")
        out.line(root)
    return FAILURE if wrong else OK


def _show(recorded: Run, root: str | None, out: Output) -> int:
    from tachograph.inspecting import artifacts

    found = list(artifacts(recorded))
    written = None if root is None else _written(recorded, root)
    if out.json:
        shown = [
            {
                "name": each.name,
                "path": each.path,
                "size": each.size,
                "sha256": each.sha256,
                "state": each.state,
            }
            for each in found
        ]
        tree = None if written is None else {"root": root, "files": written}
        out.document({"jobRunId": recorded.id, "artifacts": shown, "tree": tree})
    else:
        _tell(recorded, [(e.name, size(e.size), e.state, e.path) for e in found], written, out)
    return OK if all(each.state == "ok" for each in found) else FAILURE


def _written(recorded: Run, root: str) -> list[dict[str, Any]]:
    """Return the artifact files of a run below a root, and which rule lets each one go."""
    from tachograph.domain.retention import rule_for
    from tachograph.infra.artifact_files import ArtifactFolder
    from tachograph.maintenance_runs import names_of

    folder = ArtifactFolder(root)
    found = []
    for kind, name in names_of(recorded).items():
        stamp, rule = folder.stamp(name), rule_for(recorded, kind)
        found.append(
            {
                "kind": kind,
                "path": folder.path(name),
                "size": None if stamp is None else stamp.size,
                "rule": None if rule is None else rule.id,
            }
        )
    return found


def _tell(
    recorded: Run,
    rows: list[tuple[str, str, str, str]],
    written: list[dict[str, Any]] | None,
    out: Output,
) -> None:
    if rows:
        out.table(("NAME", "SIZE", "STATE", "PATH"), rows)
    else:
        out.note(f"Run {recorded.id} recorded no files.")
    if written is None:
        return
    if rows:
        out.line()
    out.table(("FILE", "SIZE", "PATH"), [_row(file) for file in written])


def _row(file: dict[str, Any]) -> tuple[str, str, str]:
    if file["size"] is not None:
        return file["kind"], size(file["size"]), file["path"]
    why = "not there" if file["rule"] is None else f"gone by {file['rule']}"
    return file["kind"], "-", f"{file['path']} ({why})"
