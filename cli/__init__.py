"""The command line: parse, call a use case, print. No rule lives here."""

if __name__ != "tachograph.cli":
    raise ImportError("import tachograph.cli, not cli")
