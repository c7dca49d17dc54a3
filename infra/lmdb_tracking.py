"""How far other logs were processed, kept beside what was made of them. Never goes backwards."""

from __future__ import annotations

from tachograph.domain.errors import StoredNameError, TrackingConflictError
from tachograph.infra.layout import U64, check_position, decode_text, encode_text, name_key

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.infra.lmdb_environment import Environment, Transaction


class LMDBTracking:
    """The highest processed position of each named log. Value: position, then the name."""

    __slots__ = ("_environment", "database")

    def __init__(self, environment: Environment, name: str = "events") -> None:
        self._environment = environment
        self.database = encode_text(f"{name}.tracking")

    def check(self, txn: Transaction, name: str, position: int) -> None:
        """Refuse a position that is not after the recorded one. Writes nothing."""
        check_position(name, position)
        recorded = self.read(txn, name)
        if recorded is not None and position <= recorded:
            raise TrackingConflictError(name, position, recorded)

    def put(self, txn: Transaction, name: str, position: int) -> None:
        """Record a position that was checked in this transaction."""
        value = U64.pack(position) + encode_text(name)
        txn.put(name_key(name), value, db=self._environment.databases[self.database])

    def read(self, txn: Transaction, name: str) -> int | None:
        """Return the recorded position of a log, None if nothing of it was processed."""
        value = txn.get(name_key(name), db=self._environment.databases[self.database])
        if value is None:
            return None
        if decode_text(value[8:]) != name:
            raise StoredNameError(name, decode_text(value[8:]))
        (position,) = U64.unpack_from(value)
        return int(position)
