"""Write the golden explanations that are missing. Never changes a file that exists.

    python tests/audit/make_audit.py

For each golden run `golden/<name>.json` is what `tacho run explain --json` prints, and
`golden/<name>.txt` what a person sees. Read a new one before you commit it, as an operator at
night would: is it exactly why? Where one has to change, remove it first, and say why in the log.
"""

from __future__ import annotations

import json
import sys
import tempfile
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from audit.bench import Audited

FOLDER = Path(__file__).resolve().parent / "golden"
MODULES = ("by_the_gate", "by_its_end", "by_a_harness", "by_the_queues", "unfinished")


def recorders() -> dict[str, Callable[[Audited], str]]:
    """Return what records each golden run, by name."""
    from audit.bench import GOLDEN

    for module in MODULES:
        import_module(f"audit.{module}")
    return GOLDEN


def explained(name: str, folder: Path) -> tuple[str, str]:
    """Record a golden run, with its files in a folder, and return its explanation twice."""
    from audit.bench import Audited

    bench = Audited(folder)
    run_id = recorders()[name](bench)
    shape = json.dumps(bench.shape(run_id), indent=2, ensure_ascii=False)
    return shape + "\n", bench.screen(run_id)


def main() -> None:
    """Write what is missing, and say so."""
    FOLDER.mkdir(exist_ok=True)
    for name in recorders():
        paths = [FOLDER / f"{name}{ending}" for ending in (".json", ".txt")]
        with tempfile.TemporaryDirectory() as folder:
            texts = explained(name, Path(folder))
        for path, text in zip(paths, texts, strict=True):
            if not path.exists():
                path.write_text(text, encoding="utf-8")
                print("wrote", path.name)


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent.parent))
    main()
