"""What archives hold, for people and as JSON. Decides nothing."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

from tachograph import lifecycle
from tachograph.cli.bars import Bar
from tachograph.cli.exit_codes import CORRUPT, OK
from tachograph.cli.jsonable import jsonable
from tachograph.cli.sizes import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.archiving import RunPlan
    from tachograph.cli.output import Output

    Fields = dict[str, Any]

_COLUMNS = ("RUN", "STATUS", "MEMBERS", "SIZE", "FILES", "LEFT OUT")


def card_text(card: Fields) -> str:
    """Return a run's card as JSON; the same text whatever the terminal."""
    return json.dumps(jsonable(card), ensure_ascii=False, indent=2, allow_nan=False)


def show_plans(
    plans: Sequence[RunPlan], made: tuple[str, str] | None, out: Output, *, dry_run: bool
) -> None:
    """Print what was archived, or would be."""
    runs = [plan.fields for plan in plans]
    if out.json:
        path, sha256 = made or (None, None)
        out.document({"archive": path, "sha256": sha256, "dryRun": dry_run, "runs": runs})
    elif not plans:
        out.note("There is nothing to archive.")
    else:
        _table(runs, out)
    for fields in runs:
        _warn(fields, out)
    if made is not None:
        out.note(f"Archived {_runs(len(runs))} in {made[0]}")
    elif plans:
        out.note(f"Would archive {_runs(len(runs))}; nothing was written.")


def show_contents(path: str, out: Output) -> int:
    """Print what an archive holds."""
    manifest = lifecycle.contents(path)
    if out.json:
        out.document({"archive": os.path.realpath(path), "runs": manifest["runs"]})
    else:
        _table(manifest["runs"], out)
        for fields in manifest["runs"]:
            _warn(fields, out)
    return OK


def show_check(path: str, out: Output) -> int:
    """Print what is wrong with an archive; exit code 4 when anything is."""
    with Bar(out, "check") as bar:
        problems = lifecycle.problems(path, bar)
    if out.json:
        found = {"archive": os.path.realpath(path), "whole": not problems, "problems": problems}
        out.document(found)
    else:
        for problem in problems:
            out.line(problem)
        if problems:
            out.warn(f"{path} is damaged. Use another copy of it.")
        else:
            out.line(f"{path} is whole.")
    return CORRUPT if problems else OK


def _table(runs: Sequence[Fields], out: Output) -> None:
    out.table(_COLUMNS, [_row(fields) for fields in runs])


def _row(fields: Fields) -> tuple[str, ...]:
    files = fields["artifacts"]
    kept = sum(file["member"] is not None for file in files)
    left_out = len(files) - kept + len(fields["missingBlobs"])
    return (
        fields["jobRunId"],
        fields["status"],
        str(fields["members"]),
        size(fields["bytes"]),
        str(kept),
        str(left_out) if left_out else "",
    )


def _warn(fields: Fields, out: Output) -> None:
    run_id = fields["jobRunId"]
    for file in fields["artifacts"]:
        if file["member"] is None:
            out.warn(f"{run_id}: {file['name']} ({file['path']}) is {file['state']}: left out.")
    for digest in fields["missingBlobs"]:
        out.warn(f"{run_id}: payload {digest} is missing in the store: left out.")


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"
