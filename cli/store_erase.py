"""`tacho store erase`: destroy the bodies of a run for good; the proof that it was there stays."""

from __future__ import annotations

from tachograph.cli.options import Argument, Option, Spec, UsageError, flag
from tachograph.cli.sizes import size

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output
    from tachograph.erasing import Erasure

SPEC = Spec(
    "Destroy the events' bodies of a run for good; the proof that it was there stays.",
    Argument("run", "The run, by its whole id.", complete="run"),
    Option("--reason", "Why; kept in the log.", metavar="TEXT"),
    flag("--apply", "Destroy them; without it, only show what would be destroyed."),
    details="""Nobody can bring them back. Bodies go from the log, from archives and from views, and
payloads go that no other run refers to; the log is written anew, so that no free page holds their
bytes. So do the files in the store that are named after it, such as those of a cron job. What
stays are the run's id, the types, times and digests of its events, and an event that says who
erased it, when and why: `tacho store verify` still proves the chain.

An unfinished run is refused. So is a store that another process has open: end watchdogs first.
Files outside the store are named and left alone, and so are runs that may have copies of its
words: its forks, what it was forked from, its parent and the runs within it. Copies made earlier
(backups, exports) are not known here. Killed on the way, running it again does the rest. Of a run
that was erased before, it destroys what was put back.""",
)

RELATIONS = {
    "fork": "a fork of it",
    "source": "what it was forked from",
    "parent": "its parent",
    "within": "a run within it",
}


def run(params: Params, out: Output) -> None:
    """Show what would be destroyed, or destroy it."""
    from tachograph import erasurekeeping, storekeeping
    from tachograph.cli.opening import ACTOR

    if params.apply and not params.reason:
        raise UsageError("Why is it erased? Say so with --reason: the log keeps that.")
    store = storekeeping.find_existing(out.store)
    if not params.apply:
        _preview(params, out)
        return
    run_id = _exact(params, out)
    planned = erasurekeeping.erase(store, run_id, params.reason, actor=ACTOR)
    gone = [
        path
        for each in dict.fromkeys([*planned.finished, run_id])
        for path in _remove_cards(store, each)
    ]
    if planned.finished:
        out.note(f"Finished what was begun: {', '.join(planned.finished)}.")
    _show(planned, gone, out, applied=True)


def _preview(params: Params, out: Output) -> None:
    from tachograph import erasurekeeping
    from tachograph.cli.bars import Bar
    from tachograph.cli.exact import exact_run
    from tachograph.cli.opening import open_store

    services = open_store(out, read_only=True)
    run_id = exact_run(services, params.run, out)
    with Bar(out, "look") as bar:
        planned = erasurekeeping.plan_erasure(services, run_id, bar)
    _show(planned, [], out, applied=False)


def _exact(params: Params, out: Output) -> str:
    """Return the run's id, and leave the store closed: erasing wants it alone."""
    from tachograph.bootstrap import open_store
    from tachograph.cli.exact import exact_run

    services = open_store(out.store, read_only=True)
    try:
        return exact_run(services, params.run, out)
    finally:
        services.close()


def _remove_cards(store: str, run_id: str) -> list[str]:
    """Remove the card that a workspace has of the run."""
    import os

    from tachograph.dropin.places import of_store

    workspace = of_store(store, os.environ)
    if workspace is None or not workspace.cards.is_dir():
        return []
    from tachograph.infra.card_files import CardFiles

    files = CardFiles(workspace.cards)
    with files.lock():
        if run_id not in files.names():
            return []
        files.path(run_id).unlink()
    return [str(files.path(run_id))]


def _show(planned: Erasure, cards: Sequence[str], out: Output, *, applied: bool) -> None:
    if out.json:
        out.document(
            {
                "jobRunId": planned.run_id,
                "applied": applied,
                "erasedBefore": planned.was_erased,
                "events": planned.records,
                "bytes": None if planned.was_erased else planned.bytes,
                "blobs": planned.blobs,
                "sharedBlobs": planned.shared,
                "doubtfulBlobs": planned.doubtful,
                "unread": planned.unread,
                "files": planned.files,
                "rewritten": planned.archived_in,
                "outside": planned.outside,
                "unreadable": planned.unreadable,
                "related": [
                    {"jobRunId": run_id, "relation": what}
                    for run_id, what in planned.related.items()
                ],
                "cards": list(cards),
            }
        )
        return
    for line in _lines(planned, applied=applied):
        out.line(line)
    for path in cards:
        out.line(f"Removed its card: {path}")
    if not applied:
        out.note("Nobody can bring that back. Add --reason TEXT and --apply to destroy it.")


def _lines(planned: Erasure, *, applied: bool) -> Iterator[str]:
    """Yield what goes, what stays, and where copies may be."""
    what = f"{planned.records} bodies and {len(planned.blobs)} payloads of {planned.run_id}"
    if planned.was_erased:
        yield f"{planned.run_id} was erased before: {what} went then."
        verb = "Destroyed" if applied else "Would destroy"
        yield f"{verb} what is left of it, or was put back."
    else:
        verb = "Destroyed" if applied else "Would destroy"
        yield f"{verb} {what} ({size(planned.bytes + planned.blob_bytes)})."
    if planned.shared:
        yield f"{len(planned.shared)} payloads stay: other runs refer to them."
    if planned.doubtful:
        yield (
            f"{len(planned.doubtful)} payloads stay, since nobody can tell whether others refer to "
            f"them: events of {', '.join(planned.unread)} are lost or damaged. They are "
            f"{', '.join(planned.doubtful)}."
        )
    gone, anew = ("Removed", "Written anew") if applied else ("Goes", "Is written anew")
    for path in planned.files:
        yield f"{gone}: {path}"
    for path in planned.archived_in:
        yield f"{anew} without it: {path}"
    for path in planned.outside:
        yield f"Recorded by it, left alone: {path}"
    for path in planned.unreadable:
        yield f"Damaged, left alone, and may hold some of it: {path}"
    for run_id, relation in planned.related.items():
        yield f"May hold copies of its words, left alone: {run_id} ({RELATIONS[relation]})"
