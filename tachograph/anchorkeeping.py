"""Build what anchors need: what bootstrap is to recording. Imports nothing heavy until it signs."""

from __future__ import annotations

from tachograph import anchoring
from tachograph.anchoring import Anchor
from tachograph.infra import anchor_files

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tachograph.bootstrap import Services
    from tachograph.domain.records import Problem


def make(services: Services, key_file: str | None = None) -> Anchor:
    """Return the anchor of an open store, signed where a key is named."""
    anchor = anchoring.anchor_of(services.log, services.actor.now_us())
    if key_file is None:
        return anchor
    from tachograph.infra.signing import load_key

    key = load_key(key_file)
    signature = key.sign(anchoring.statement(anchor))
    return Anchor(
        anchor.head, anchor.time_us, anchor.first, public_key=key.public, signature=signature
    )


def append(anchor: Anchor, path: str) -> None:
    """Append an anchor to a file. Durable on return. Raises StoreFullError or AnchorFileError."""
    import json

    anchor_files.append(path, json.dumps(anchoring.to_fields(anchor)))


def append_when_due(
    services: Services, path: str, every_us: int, key_file: str | None = None
) -> Anchor | None:
    """Append an anchor to a file, when the last one is old enough and the log went on since.

    Returns it, None when nothing was due.
    """
    changed_us = anchor_files.changed_us(path)
    if changed_us is not None and 0 <= services.actor.now_us() - changed_us < every_us:
        return None
    head = services.log.head()
    if not head.position or f'"{anchoring.text_of(head)}"' in (anchor_files.last_line(path) or ""):
        return None
    anchor = make(services, key_file)
    append(anchor, path)
    return anchor


def read(path: str) -> tuple[list[Anchor], list[Problem]]:
    """Return the anchors in a file, and a problem for each line that is none. Raises OSError."""
    with open(path, encoding="utf-8", errors="replace") as file:  # noqa: PTH123
        return anchoring.read_lines(path, file)


def signature_problems(anchors: Sequence[Anchor], key_file: str | None) -> Iterator[Problem]:
    """Yield what is wrong with the signatures of anchors; nothing is imported where there is none.

    Raises SigningKeyError and SigningUnavailableError.
    """
    signed = any(each.signature is not None or each.public_key is not None for each in anchors)
    if key_file is None and not signed:
        return
    from tachograph.infra.signing import is_signed, load_public_key

    known = None if key_file is None else load_public_key(key_file)
    yield from anchoring.check_signatures(anchors, is_signed, known)
