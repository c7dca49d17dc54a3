"""Read models: events in, answers out. No I/O of their own; storage comes through ports."""

if __name__ != "tachograph.projections":
    raise ImportError("import tachograph.projections, not projections")
