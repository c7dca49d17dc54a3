"""`tacho checkpoint prune`: remove legacy checkpoint files that nothing goes on from any more."""

from __future__ import annotations

import os

from tachograph.cli.options import Argument, Option, Spec, UsageError, flag

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.pruning_checkpoints import Stale

SPEC = Spec(
    "Remove legacy checkpoint files that nothing goes on from any more.",
    Argument("folder", "The folder that holds them.", metavar="DIR", complete="path"),
    Option("--keep", "A fingerprint that is current; may be repeated.", multiple=True,
           metavar="FINGERPRINT"),
    Option("--older-than", "Only files that were changed so long ago, such as 7d.",
           metavar="TIME"),
    Option("--reason", "Why; kept with each run.", metavar="TEXT"),
    flag("--apply", "Remove them; without it, only show what would go."),
    details="""Looks at m3-batches-*.json and reinforcement-batches-*.json in the folder, and at
no other file; FINGERPRINT has to be one, 8 digits of a hash or more. What goes is noted before it
goes: in the run of its fingerprint, and where the store has none, in a run of this pruning. A file
that changes meanwhile stays.""",
)  # fmt: skip


def run(params: Params, out: Output) -> int:
    """Show what would go, or remove it; exit code 1 when something could not be removed."""
    from tachograph.cli.exit_codes import FAILURE, OK
    from tachograph.cli.folders import existing
    from tachograph.cli.run_import import store_of
    from tachograph.infra.clock import now_us, parse_time
    from tachograph.taking_over import find_stale, prune

    if not params.keep and params.older_than is None:
        raise UsageError("What is to stay? Say so with --keep FINGERPRINT, or --older-than TIME.")
    before_us = None if params.older_than is None else parse_time(params.older_than, now_us())
    folder = existing(params.folder)
    services = store_of(out, apply=params.apply, create=True)
    stale = find_stale(services, folder, keep=params.keep, before_us=before_us)
    if params.apply and services is not None:
        prune(services, os.path.abspath(folder), stale, reason=params.reason)  # noqa: PTH100
    _show(stale, out, applied=params.apply)
    return FAILURE if params.apply and any(file.why is not None for file in stale) else OK


def _show(stale: Sequence[Stale], out: Output, *, applied: bool) -> None:
    from tachograph.cli.folders import short
    from tachograph.cli.sizes import size
    from tachograph.domain.iso_time import iso

    going = [file for file in stale if file.why is None]
    room = sum(file.size for file in going)
    if out.json:
        names = ("path", "size", "sha256", "fingerprint", "why")
        files = [
            {
                **{name: getattr(file, name) for name in names},
                "jobRunId": file.run_id,
                "modifiedAt": iso(file.modified_us),
            }
            for file in stale
        ]
        out.document({"applied": applied, "files": len(going), "bytes": room, "stale": files})
        return
    if going:
        rows = [
            (short(file.path), file.run_id or "-", out.when(file.modified_us), size(file.size))
            for file in going
        ]
        out.table(("FILE", "RUN", "CHANGED", "SIZE"), rows)
    for file in stale:
        if file.why is not None:
            out.note(f"{file.path} stays: {file.why}.")
    verb = "Removed" if applied else "Would remove"
    hint = "" if applied or not going else " Add --apply to remove them."
    out.note(f"{verb} {len(going)} files ({size(room)}).{hint}")
