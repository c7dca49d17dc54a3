"""Bytes, disk, clock and processes. The only place that knows LMDB and msgpack."""

if __name__ != "tachograph.infra":
    raise ImportError("import tachograph.infra, not infra")
