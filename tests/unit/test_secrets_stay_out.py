"""G13: a known secret is nowhere below the store, in any form, whatever was recorded."""

from __future__ import annotations

import base64
import logging
from pathlib import Path

import pytest

import tachograph
from tachograph import storekeeping
from tachograph.bootstrap import open_store
from tachograph.domain.errors import SecretLeftError
from tachograph.infra.codec import Codec
from tachograph.packing import Packing

CANARY = "canary-1f4e-secret-value"


def leak() -> dict[str, str]:
    return {"text": CANARY}


def test_a_secret_is_nowhere_below_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DEPLOY_TOKEN", CANARY)
    store = tmp_path / "store"
    encoded = base64.b64encode(CANARY.encode()).decode()
    with tachograph.record("leaky", {"header": f"Bearer {CANARY}"}, store=store) as run:
        with run.phase("work") as phase:
            for batch in phase.batches([CANARY], size=1):
                batch.complete([CANARY * 2000, encoded])  # large enough for a blob
        run.save_checkpoint({CANARY: [CANARY.encode(), (CANARY,)]})
        run.step(leak)
        run.effect("send", lambda: CANARY, description=CANARY)
        run.note(f"using {CANARY}")
        run.retry("transient", 1, error=f"401 for {CANARY}")
        logging.getLogger("http").warning("sent %s", CANARY)
        run.judge(inputs=1, outputs=1)
    services = open_store(str(store))
    storekeeping.rebuild(services)
    with (tmp_path / "export.jsonl").open("w", encoding="utf-8") as file:
        storekeeping.export(services, file.write)
    services.close()

    files = [path for path in [*store.rglob("*"), tmp_path / "export.jsonl"] if path.is_file()]
    assert len(files) > 4
    for path in files:
        assert CANARY.encode() not in path.read_bytes(), path
        assert encoded.encode() not in path.read_bytes(), path


def test_a_secret_that_cannot_be_taken_out_is_refused() -> None:
    class Blind:
        def touches(self, packed: bytes) -> bool:
            return b"secret" in packed

        def redact(self, value: object) -> object:
            return value

    packing = Packing(Codec(), Blind())

    with pytest.raises(SecretLeftError, match=r"inputs holds a known secret"):
        packing.pack({"a": "secret"}, "inputs")
    assert packing.unpack(packing.pack({"a": "plain"}, "inputs")) == {"a": "plain"}
