"""The transcoder passes the suite of the `eventsourcing` library, its JSON bytes aside."""

from __future__ import annotations

import json
import pickle
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest
from eventsourcing.application import Application
from eventsourcing.domain import Aggregate, event
from eventsourcing.persistence import (
    MapperDeserialisationError,
    Transcoder,
    Transcoding,
    TranscodingNotRegisteredError,
)
from eventsourcing.tests import persistence as suite
from stored_values import exact

from tachograph.domain.errors import (
    MalformedValueError,
    UnregisteredTypeError,
    UnstorableValueError,
)
from tachograph.infra.codec import Codec
from tachograph.infra.codec_extensions import CustomValue
from tachograph.infra.msgpack_transcoder import MsgpackTranscoder

TOPIC = "tachograph.infra.msgpack_transcoder:MsgpackTranscoder"


class AsBase(Transcoding):
    """Stores a subclass of a builtin type as its base."""

    def __init__(self, kind: type, base: type) -> None:
        self.type = kind
        self.name = kind.__name__.lower()
        self._base = base

    def encode(self, obj: Any) -> Any:
        return self._base(obj)

    def decode(self, data: Any) -> Any:
        return self.type(data)


TRANSCODINGS = (
    suite.CustomType1AsDict(),
    suite.CustomType2AsDict(),
    AsBase(suite.Mydict, dict),
    AsBase(suite.MyList, list),
    AsBase(suite.MyStr, str),
    AsBase(suite.MyInt, int),
)


def registered(*transcodings: Transcoding) -> MsgpackTranscoder:
    """Return a transcoder that knows the transcodings."""
    transcoder = MsgpackTranscoder()
    for transcoding in transcodings:
        transcoder.register(transcoding)
    return transcoder


class Remembering(Transcoder):
    """A transcoder that remembers what it encoded, and reads the JSON that the suite has ready."""

    def __init__(self, transcoder: Transcoder) -> None:
        self.transcoder = transcoder
        self.encoded: dict[bytes, Any] = {}

    def encode(self, obj: Any) -> bytes:
        data = self.transcoder.encode(obj)
        self.encoded[data] = obj
        return data

    def decode(self, data: bytes) -> Any:
        return self.transcoder.decode(data if data in self.encoded else self._from_json(data))

    def _from_json(self, data: bytes) -> bytes:
        obj = json.loads(data)
        if isinstance(obj, dict):
            obj = CustomValue(obj["_type_"], Codec().pack(obj["_data_"]))
        return self.transcoder.encode(obj)


class TestMsgpackTranscoder(suite.TranscoderTestCase):
    """Where the suite compares encoded bytes with JSON, the object must come back from them."""

    transcoder: Remembering

    def construct_transcoder(self) -> Transcoder:
        return Remembering(registered(*TRANSCODINGS))

    def assertEqual(self, first: Any, second: Any, msg: Any = None) -> None:  # noqa: N802
        if isinstance(first, bytes) and isinstance(second, bytes):
            data = first if first in self.transcoder.encoded else second
            first, second = self.transcoder.encoded[data], self.transcoder.decode(data)
        super().assertEqual(first, second, msg)
        super().assertEqual(type(first), type(second), msg)

    def test_custom_type_error(self) -> None:
        """The suite expects the words of the library's own transcoder; these are ours."""
        with pytest.raises(TypeError, match=r"^value cannot be stored: .*persistence\.MyClass"):
            self.transcoder.encode(suite.MyClass())
        with pytest.raises(TypeError, match=r"^value\.a cannot be stored"):
            self.transcoder.encode({"a": suite.MyClass()})
        with pytest.raises(TypeError, match="'custom_type3_as_dict', which is not registered"):
            self.transcoder.decode(b'{"_type_":"custom_type3_as_dict","_data_":""}')


# Errors


def test_code_that_catches_the_error_of_the_library_catches_ours() -> None:
    data = registered(*TRANSCODINGS).encode(suite.CustomType1(UUID(int=1)))

    with pytest.raises(TranscodingNotRegisteredError) as encoding:
        MsgpackTranscoder().encode(suite.MyClass())
    with pytest.raises(TranscodingNotRegisteredError) as decoding:
        MsgpackTranscoder().decode(data)
    assert isinstance(encoding.value, UnstorableValueError)
    assert isinstance(decoding.value, UnregisteredTypeError)


def test_its_errors_survive_pickling() -> None:
    with pytest.raises(UnstorableValueError) as caught:
        MsgpackTranscoder().encode([1j])

    error = pickle.loads(pickle.dumps(caught.value))
    assert type(error) is type(caught.value)
    assert str(error) == str(caught.value)


def test_damaged_bytes_are_refused() -> None:
    with pytest.raises(MalformedValueError):
        MsgpackTranscoder().decode(b'{"a":1}')


# Applications


class Account(Aggregate):
    """Has an event with values that JSON has no form for."""

    def __init__(self) -> None:
        self.entries: list[Any] = []

    @event("Booked")
    def book(self, entry: Any) -> None:
        self.entries.append(entry)


ENTRY = {
    "amount": Decimal("1.50"),
    "at": datetime(2025, 1, 31, 12, tzinfo=UTC),
    "key": (1, frozenset({UUID(int=1)})),
    7: b"seven",
}


def test_an_application_uses_it_by_its_topic() -> None:
    application: Application[UUID] = Application(env={"TRANSCODER_TOPIC": TOPIC})
    account = Account()
    account.book(ENTRY)
    application.save(account)

    copy: Account = application.repository.get(account.id)
    assert isinstance(application.mapper.transcoder, MsgpackTranscoder)
    assert exact(copy.entries) == exact([ENTRY])
    assert copy == account


class Bank(Application[UUID]):
    """Constructs its transcoder itself, and registers a custom type."""

    def construct_transcoder(self) -> Transcoder:
        return registered(*TRANSCODINGS)


def test_an_application_may_construct_it_and_register_transcodings() -> None:
    bank = Bank()
    account = Account()
    account.book(suite.CustomType2(suite.CustomType1(UUID(int=1))))
    bank.save(account)

    copy: Account = bank.repository.get(account.id)
    assert copy.entries == account.entries


def test_an_application_is_told_which_transcoding_is_missing() -> None:
    bank = Bank()
    account = Account()
    account.book(suite.CustomType1(UUID(int=1)))
    (recorded, *_) = bank.save(account)[-1:]
    stored = bank.mapper.to_stored_event(recorded.domain_event)
    bank.mapper.transcoder = MsgpackTranscoder()

    with pytest.raises(MapperDeserialisationError, match="custom_type1_as_dict"):
        bank.mapper.to_domain_event(stored)
