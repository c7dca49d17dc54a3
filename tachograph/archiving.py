"""What belongs in an archive of runs, and recording that it was made. Touches no file itself.

An archive is read without Tachograph: each run has its card, its events as lines of JSON, its
payloads and the files that it recorded, and the manifest says what each member is.
"""

from __future__ import annotations

import hashlib
import json
from functools import partial
from typing import TYPE_CHECKING

from tachograph.domain.copies import Heading
from tachograph.domain.errors import ArchiveDamagedError, BlobMissingError, RunUnfinishedError
from tachograph.domain.records import Head, _Fields
from tachograph.exporting import CHUNK
from tachograph.inspecting import OK, artifacts
from tachograph.verifying import references

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from typing import Any, Protocol

    from tachograph.domain.blobref import BlobRef
    from tachograph.domain.records import Record
    from tachograph.domain.run import Run
    from tachograph.exporting import Copy, Records
    from tachograph.inspecting import Artifact
    from tachograph.ports import Blobs, Codec, EventLog

    Fields = dict[str, Any]
    Chunks = Callable[[], Iterable[bytes]]
    Execute = Callable[[str, Callable[[Run, Any], None]], None]
    """Gives a command to a run; returns when what it recorded is durable."""

    class Write(Protocol):
        """Writes an archive."""

        def __call__(self, manifest: bytes, members: Sequence[Planned]) -> tuple[str, str]:
            """Return where it is and its SHA-256, once it is on disk."""
            ...


KIND = "tachograph archive"
FORMAT = 1
LONGEST_NAME = 200
"""Bytes of a part of a member's name; file systems take 255."""


class Planned(_Fields):
    """A member of an archive to be: name, size and SHA-256 are promised, `chunks` gives it."""

    __slots__ = ("chunks", "name", "sha256", "size", "time_us")

    def __init__(self, name: str, size: int, sha256: str, chunks: Chunks, time_us: int) -> None:
        self.name = name
        self.size = size
        self.sha256 = sha256
        self.chunks = chunks
        self.time_us = time_us


class RunPlan(_Fields):
    """What an archive will hold of one run: `fields` is its part of the manifest."""

    __slots__ = ("fields", "members", "run_id")

    def __init__(self, run_id: str, members: list[Planned], fields: Fields) -> None:
        self.run_id = run_id
        self.members = members
        self.fields = fields


class Planner:
    """Says what belongs in an archive. Writes and records nothing.

    `to_line` gives the text of a part of an export, `card` the JSON text of a run's card and its
    status, and `read_file` the bytes of a file.
    """

    def __init__(
        self,
        log: EventLog,
        records: Records,
        codec: Codec,
        blobs: Blobs,
        *,
        to_line: Callable[[Copy], str],
        card: Callable[[str], tuple[str, str]],
        read_file: Callable[[str], Iterable[bytes]],
    ) -> None:
        self._log = log
        self._records = records
        self._codec = codec
        self._blobs = blobs
        self._to_line = to_line
        self._card = card
        self._read_file = read_file

    def plan(self, run: Run) -> RunPlan:
        """Return what belongs in an archive of a run, up to its present version.

        Files that are missing or are not what was recorded, and payloads that the store has
        lost, are named in the plan and left out.
        """
        folder = f"runs/{safe_name(run.id)}"
        text, status = self._card(run.id)
        members = [self._text(f"{folder}/card.json", text, run.updated_us)]
        events, refs = self._events(run, f"{folder}/events.jsonl")
        members.append(events)
        files = [self._file(run, folder, artifact) for artifact in artifacts(run)]
        members += [member for member, _ in files if member is not None]
        kept, lost = self._payloads(run, folder, refs)
        fields = {
            "jobRunId": run.id,
            "status": status,
            "version": run.version,
            "members": len(members) + len(kept),
            "bytes": sum(member.size for member in (*members, *kept)),
            "artifacts": [shown for _, shown in files],
            "missingBlobs": lost,
        }
        return RunPlan(run.id, members + kept, fields)

    def _text(self, name: str, text: str, time_us: int) -> Planned:
        data = text.encode("utf-8", "backslashreplace")
        return Planned(name, len(data), _sha256(data), lambda: (data,), time_us)

    def _events(self, run: Run, name: str) -> tuple[Planned, list[BlobRef]]:
        refs: dict[BlobRef, None] = {}
        digest, size = hashlib.sha256(), 0
        for line in self._lines(run, refs):
            digest.update(line)
            size += len(line)
        chunks = partial(self._lines, run, {})  # reads the same events once more
        return Planned(name, size, digest.hexdigest(), chunks, run.updated_us), list(refs)

    def _lines(self, run: Run, refs: dict[BlobRef, None]) -> Iterator[bytes]:
        """Yield the lines of an export of one run without its payloads, and collect these."""
        last = self._log.read_stream(run.id, up_to=run.version, limit=1, reverse=True)
        yield self._line(Heading(Head(last[0].position, last[0].digest), run.id))
        for record in self._events_of(run):
            refs.update(dict.fromkeys(references(self._codec, record.body) or ()))
            yield self._line(self._records.copied(record))

    def _line(self, copy: Copy) -> bytes:
        return (self._to_line(copy) + "\n").encode("utf-8", "surrogatepass")

    def _events_of(self, run: Run) -> Iterator[Record]:
        after = 0
        while records := self._log.read_stream(run.id, after=after, up_to=run.version, limit=CHUNK):
            yield from records
            after = records[-1].version

    def _file(self, run: Run, folder: str, found: Artifact) -> tuple[Planned | None, Fields]:
        name = f"{folder}/artifacts/{safe_name(found.name)}/{safe_name(_base(found.path))}"
        kept = found.state == OK
        shown = {
            "name": found.name,
            "path": found.path,
            "size": found.size,
            "sha256": found.sha256,
            "state": found.state,
            "member": name if kept else None,
        }
        if not kept:
            return None, shown
        chunks = partial(self._read_file, found.path)
        return Planned(name, found.size, found.sha256, chunks, run.updated_us), shown

    def _payloads(
        self, run: Run, folder: str, refs: Iterable[BlobRef]
    ) -> tuple[list[Planned], list[str]]:
        kept, lost = [], []
        for ref in refs:
            try:
                digest = _sha256(self._blobs.get(ref))
            except BlobMissingError:
                lost.append(ref.digest)
                continue
            chunks = partial(self._payload, ref)
            name = f"{folder}/blobs/{ref.digest}"
            kept.append(Planned(name, ref.size, digest, chunks, run.updated_us))
        return kept, lost

    def _payload(self, ref: BlobRef) -> tuple[bytes]:
        return (self._blobs.get(ref),)


def refuse_unfinished(run: Run, status: str) -> None:
    """Refuse a run that may still go on. Raises RunUnfinishedError."""
    if not run.finished:
        raise RunUnfinishedError(run.id, status)


def archive(plans: Sequence[RunPlan], write: Write, execute: Execute) -> tuple[str, str]:
    """Write the archive, then record in each run where it is; return its place and SHA-256.

    Killed between the two, the archive is there and whole, and some runs do not know of it.
    """
    members = [member for plan in plans for member in plan.members]
    location, sha256 = write(to_manifest(plans), members)
    for plan in plans:
        execute(plan.run_id, lambda run, why: run.archive(why, location, sha256))
    return location, sha256


def to_manifest(plans: Sequence[RunPlan]) -> bytes:
    """Return the manifest of an archive: the runs, and every member with its checksum."""
    members = [
        {"name": member.name, "size": member.size, "sha256": member.sha256}
        for plan in plans
        for member in plan.members
    ]
    document = {
        "kind": KIND,
        "format": FORMAT,
        "runs": [plan.fields for plan in plans],
        "members": members,
    }
    return (json.dumps(document, indent=1) + "\n").encode()


def from_manifest(path: str, data: bytes) -> Fields:
    """Return what a manifest says. Raises ArchiveDamagedError when it is none, or a newer one."""
    try:
        document = json.loads(data)
        if document["kind"] != KIND or document["format"] > FORMAT:
            raise ArchiveDamagedError(path, "it was written by a newer Tachograph, or by another")
        for member in document["members"]:
            _texts(member, "name", "sha256")
            _wholes(member, "size")
        for run in document["runs"]:
            _texts(run, "jobRunId", "status")
            _wholes(run, "version", "members", "bytes")
            list(run["missingBlobs"])
            for artifact in run["artifacts"]:
                _texts(artifact, "name", "path", "sha256", "state")
                _wholes(artifact, "size")
                artifact["member"]  # None, or a name
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise ArchiveDamagedError(path, f"its list of members makes no sense: {error}") from error
    return document  # type: ignore[no-any-return]


def kept_files(manifest: Fields) -> set[tuple[str, str, str]]:
    """Return (run id, artifact name, SHA-256) of each recorded file that an archive holds."""
    return {
        (run["jobRunId"], artifact["name"], artifact["sha256"])
        for run in manifest["runs"]
        for artifact in run["artifacts"]
        if artifact["member"] is not None
    }


def safe_name(text: str) -> str:
    """Return a text as one part of a path on any system; different texts give different parts.

    >>> safe_name("a/b"), safe_name(".."), safe_name("50% ä"), safe_name("")
    ('a%2Fb', '%2E%2E', '50%25 ä', '%')
    """
    name = "".join(_safe(letter) for letter in text)
    if not name.strip("."):
        name = name.replace(".", "%2E") or "%"
    data = name.encode()
    if len(data) <= LONGEST_NAME:
        return name
    short = _sha256(text.encode("utf-8", "surrogatepass"))[:16]
    return f"{data[: LONGEST_NAME - 20].decode('utf-8', 'ignore')}%~{short}"


def _safe(letter: str) -> str:
    if letter.isprintable() and letter not in "/\\%":
        return letter
    return "".join(f"%{byte:02X}" for byte in letter.encode("utf-8", "surrogatepass"))


def _base(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _texts(fields: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(fields[name], str):
            raise ValueError(f"{name} is {fields[name]!r}")  # noqa: TRY004  # one kind of damage


def _wholes(fields: Mapping[str, Any], *names: str) -> None:
    for name in names:
        if not isinstance(fields[name], int):
            raise ValueError(f"{name} is {fields[name]!r}")  # noqa: TRY004
