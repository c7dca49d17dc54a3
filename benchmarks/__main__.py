"""Measure Tachograph beside other tools: `python benchmarks`, or `make bench`.

A missed target is a result, not a failure: the exit code is 1 only when something could not run.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import machine
import report
import running

if TYPE_CHECKING:
    from harness import Figure

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Measure, print the table, write the JSON."""
    options = _parser().parse_args()
    for name in [name for name in os.environ if name.startswith(("TACHO_", "LMDB_", "DBOS_"))]:
        del os.environ[name]  # the caller's own stores are none of our business
    RESULTS.mkdir(exist_ok=True)
    facts = machine.facts(RESULTS)
    figures: list[Figure] = []
    broken: list[str] = []
    for theme in options.only or running.THEMES:
        print(f"== {theme}", file=sys.stderr, flush=True)
        started = time.perf_counter()
        measured_now, error = running.run(theme, RESULTS, quick=options.quick)
        figures += measured_now
        if error:
            print(error, file=sys.stderr)
            broken.append(theme)
        seconds = time.perf_counter() - started
        print(f"   {seconds:.0f} s", file=sys.stderr, flush=True)
    measured = report.document(figures, facts, quick=options.quick)
    path = report.write(RESULTS, measured)
    print(report.table(figures))
    print(f"\n{report.summary(figures)}")
    print(f"\nWritten to {path.relative_to(RESULTS.parent.parent)}")
    for theme in broken:
        print(f"Could not run: {theme}", file=sys.stderr)
    return int(bool(broken))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python benchmarks", description=__doc__.splitlines()[0])
    parser.add_argument(
        "--only",
        action="append",
        choices=running.THEMES,
        metavar="THEME",
        help=f"measure this theme; may be given again ({', '.join(running.THEMES)})",
    )
    parser.add_argument(
        "--quick", action="store_true", help="smaller stores and fewer rounds: a first look"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
