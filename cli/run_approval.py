"""`tacho run approval`: ask a person to agree before the job goes on."""

from __future__ import annotations

from tachograph.cli.opening import EPOCH, RUN, attempt
from tachograph.cli.options import Argument, Option, Spec, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Ask a person to agree before the job goes on.",
    Argument("approval", "Name of the approval, such as deploy."),
    Option("--subject", "Exactly what is to be approved, as JSON or @file.", metavar="JSON"),
    Option(
        "--file",
        "A file whose content is to be approved.",
        multiple=True,
        metavar="PATH",
        complete="path",
    ),
    RUN,
    EPOCH,
    details="""Ends with 0 when a person has agreed to exactly this, and with 8 when nobody has
decided yet: end the attempt then, with `tacho run finish --outcome partial --reason-code
waits_for_approval`. The run is resumed after `tacho run approve`. When the subject changes, an
earlier approval is void.

\b
  tacho run approval deploy --file build/app.tar.gz || exit $?""",
)


def run(params: Params, out: Output) -> int:
    """Ask, and print whether a person has agreed."""
    from tachograph.approving import ask
    from tachograph.cli.exit_codes import NEEDS_PERSON, OK

    granted, digest = ask(attempt(params, out), params.approval, _subject(params))
    status = "granted" if granted else "requested"
    if out.json:
        out.document({"approval": params.approval, "status": status, "subjectDigest": digest})
    elif not granted:
        from shlex import quote

        words = f"tacho run approve {params.run} {quote(params.approval)}"
        out.note(f"Waits for a person: `{words} --reason …`")
    return OK if granted else NEEDS_PERSON


def _subject(params: Params) -> Any:
    if params.subject is None and not params.file:
        raise UsageError("What is to be approved? Say so with --subject or --file.")
    subject: dict[str, Any] = {}
    if params.subject is not None:
        from tachograph.cli.values import read_json

        subject["subject"] = read_json(params.subject, "--subject")
    if params.file:
        from tachograph.planning import trace

        try:
            subject["files"] = [trace(path, "approval") for path in params.file]
        except OSError as error:
            raise UsageError(f"{error.filename} cannot be read: {error.strerror}.") from error
    return subject
