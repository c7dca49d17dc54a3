"""Whatever was recorded, an export restores it to the same head, and exports to the same bytes."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st
from stored_values import any_text, values
from stores import opened

from tachograph import storekeeping
from tachograph.domain.records import NewRecord
from tachograph.infra.codec import Codec

if TYPE_CHECKING:
    from collections.abc import Sequence

CODEC = Codec(keep_custom=True)

streams = st.one_of(any_text, st.builds(UUID, int=st.integers(0, 3)))
topics = st.one_of(st.sampled_from(("run.note-added", "other.made")), any_text)
bodies = st.one_of(
    values.map(lambda value: ("value", value)), st.binary().map(lambda b: ("raw", b))
)
events = st.lists(st.tuples(streams, topics, st.integers(-(2**63), 2**63 - 1), bodies), max_size=12)


def append(store: Path, recorded: Sequence[tuple[Any, str, int, tuple[str, Any]]]) -> bytes:
    """Append events to a store, one stream's versions in order; return the head's digest."""
    versions: dict[Any, int] = {}
    records = []
    for stream, topic, time_us, (kind, content) in recorded:
        versions[stream] = versions.get(stream, 0) + 1
        body = CODEC.pack(content) if kind == "value" else content
        records.append(NewRecord(stream, versions[stream], topic, time_us, body))
    with opened(store) as services:
        services.log.append(records)
        return services.log.head().digest


def positions(exported: bytes) -> list[int]:
    """Return the positions in an export, read as any reader of JSON lines would."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    lines = exported.decode("utf-8").split("\n")
    parsed = [json.loads(line, parse_constant=refuse) for line in lines[:-1]]
    return [line["position"] for line in parsed if "position" in line]


def export(store: Path, file: Path) -> bytes:
    with opened(store) as services, storekeeping.new_file(str(file)) as out:
        storekeeping.export(services, out.write)
    return file.read_bytes()


@settings(max_examples=30)
@given(recorded=events)
def test_an_export_restores_any_log(recorded: list[Any]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        source, copy = Path(folder, "source"), Path(folder, "copy")
        digest = append(source, recorded)
        exported = export(source, Path(folder, "export"))
        with opened(copy) as services:
            done = storekeeping.import_file(services, str(Path(folder, "export")))
            restored = services.log.read()
        with opened(source) as services:
            original = services.log.read()

        assert (done.events, done.head.digest) == (len(recorded), digest)
        assert restored == original
        assert positions(exported) == [number + 1 for number in range(len(recorded))]
        assert export(copy, Path(folder, "again")) == exported
