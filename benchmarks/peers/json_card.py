"""Keep the state of a job in a JSON file: what people write instead, with the standard library.

Durable and atomic: a temporary file, synced, renamed over the card, and the folder synced.
"""
# pathlib would make it start slower:
# ruff: noqa: PTH105, PTH120, PTH123

import argparse
import json
import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

HISTORY = 50


def save(path: str, card: "dict[str, Any]") -> None:
    """Replace the card."""
    temporary = f"{path}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(card, file, indent=2)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)
    folder = os.open(os.path.dirname(path), os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def checkpoint(card: "dict[str, Any]", offset: int, total: int, phase: str | None) -> None:
    """Change the card as a checkpoint does."""
    if card["status"] != "running":
        raise SystemExit(f"{card['id']} is {card['status']}")
    if not 0 <= offset <= total:
        raise SystemExit(f"offset {offset} is not within 0..{total}")
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    card["checkpoint"] = {"offset": offset, "total": total, "phase": phase, "savedAt": now}
    card["updatedAt"] = now
    event = {"at": now, "event": "checkpoint", "pid": os.getpid(), "offset": offset}
    card["history"] = [*card["history"], event][-HISTORY:]


def main() -> None:
    """Save a checkpoint in a card."""
    parser = argparse.ArgumentParser(description="Save a checkpoint in a card.")
    parser.add_argument("card")
    parser.add_argument("--offset", type=int, required=True)
    parser.add_argument("--total", type=int, required=True)
    parser.add_argument("--phase")
    options = parser.parse_args()
    with open(options.card, encoding="utf-8") as file:
        card = json.load(file)
    checkpoint(card, options.offset, options.total, options.phase)
    save(options.card, card)


if __name__ == "__main__":
    main()
