"""Ask a person to agree to something, bound to exactly what it is."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.session import Session


def ask(session: Session, name: str, subject: Any) -> tuple[bool, str]:
    """Ask for an approval; return whether a person has agreed, and the digest of the subject.

    Any difference in the subject makes it another one, for which nobody has agreed yet; the
    order of the names in a dict is none.
    Raises ApprovalError when a person has refused this very subject.
    """
    digest = session.payloads.digest(_sorted(subject), "subject")
    stored = session.payloads.store(subject, "subject")
    granted = session.execute(
        lambda run, why: run.request_approval(why, name, subject=stored, subject_digest=digest)
    )
    return granted, digest


def _sorted(value: Any) -> Any:
    """Return a value whose dicts have their names in order.

    >>> list(_sorted({"b": 1, "a": {"d": 2, "c": 3}})["a"])
    ['c', 'd']
    """
    if isinstance(value, dict):
        return {name: _sorted(value[name]) for name in sorted(value, key=repr)}
    if isinstance(value, list | tuple):
        return [_sorted(part) for part in value]
    return value
