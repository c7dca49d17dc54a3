"""Facts and rules of runs. No I/O, no clock, no third-party imports."""

if __name__ != "tachograph.domain":
    raise ImportError("import tachograph.domain, not domain")
