"""Write the golden tree of artifact files. Run it to take up a change that is meant.

python tests/golden/make_artifact_tree.py
"""

from __future__ import annotations

import re
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from treed import Treed, fill

FOLDER = Path(__file__).resolve().parent / "artifact-tree"
ROOT = "/tree"


def tree(root: Path) -> dict[str, str]:
    """Return the files of a few runs by name, without what differs from place to place.

    A digest covers all that was recorded before, so it is left out.
    """
    bench = Treed(root)
    fill(bench)
    assert bench.catch_up() == []
    return {name: masked(data, root) for name, data in bench.written().items()}


def masked(data: bytes, root: Path) -> str:
    """Return a file without its root and digest."""
    text = data.decode().replace(str(root), ROOT)
    return re.sub(r"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])", "(digest)", text)


def main() -> None:
    """Write the files."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in tree(Path(folder)).items():
            path = FOLDER / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
