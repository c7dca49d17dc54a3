"""Fingerprints and run ids, exactly as job runs have always computed them. No I/O."""

from __future__ import annotations

from tachograph.domain.errors import TachographError

_FNV_OFFSET = 2166136261
_FNV_PRIME = 16777619
_LETTERS = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_COMMAND_CHARACTERS = _LETTERS | {"-"}
_TASK_CHARACTERS = _LETTERS | set("._-")
MAX_ID_LENGTH = 200


class InvalidIdError(TachographError, ValueError):
    """The text cannot be a run id."""

    template = (
        "{0!r} cannot be a run id: {1}. Use letters, digits, '.', '_', '-' and '~', "
        "at most 200 characters."
    )


def fnv1a(text: str) -> str:
    """Return the FNV-1a 32-bit hash of the UTF-16 code units of a text, as 8 hex digits.

    Each unit is XORed whole, not byte by byte, as the original does.

    >>> fnv1a(""), fnv1a("a"), fnv1a('{"scanDays":3,"empty":true}')
    ('811c9dc5', 'e40c292c', '0dc845e1')
    """
    data = text.encode("utf-16-le", "surrogatepass")
    value = _FNV_OFFSET
    for low, high in zip(data[::2], data[1::2], strict=True):
        value = ((value ^ (low | high << 8)) * _FNV_PRIME) & 0xFFFFFFFF
    return f"{value:08x}"


def compact_json(value: object, *, sort_keys: bool = False) -> str:
    """Write a value as JavaScript's `JSON.stringify` does: compact, non-ASCII kept.

    Numbers are written as JavaScript writes them, so that a fingerprint taken there equals one
    taken here. What JSON has no form for is written as its text.

    >>> compact_json({"a": 1.0, "b": 1e-07, "c": [True, None, "ä"]})
    '{"a":1,"b":1e-7,"c":[true,null,"ä"]}'
    """
    if isinstance(value, dict):
        pairs = [(key if isinstance(key, str) else str(key), item) for key, item in value.items()]
        if sort_keys:
            pairs.sort(key=lambda pair: pair[0])
        inner = (f"{_text(key)}:{compact_json(item, sort_keys=sort_keys)}" for key, item in pairs)
        return "{" + ",".join(inner) + "}"
    if isinstance(value, list | tuple):
        return "[" + ",".join(compact_json(item, sort_keys=sort_keys) for item in value) + "]"
    if isinstance(value, set | frozenset):
        return "[" + ",".join(sorted(compact_json(item, sort_keys=True) for item in value)) + "]"
    if isinstance(value, float):
        return _number(value)
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return int.__repr__(value)
    return _text(value if isinstance(value, str) else str(value))


def _text(text: str) -> str:
    """Quote a text; like JavaScript, escape surrogates that have no partner."""
    import json

    quoted = json.dumps(text, ensure_ascii=False)
    if quoted.isascii():
        return quoted
    paired = quoted.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return "".join(
        f"\\u{ord(letter):04x}" if "\ud800" <= letter <= "\udfff" else letter for letter in paired
    )


def _number(value: float) -> str:
    """Write a float as JavaScript does (ECMAScript, Number::toString); NaN and inf are null."""
    if value != value or value in (float("inf"), float("-inf")):
        return "null"
    # Both languages choose the shortest digits that read back the same; only the layout differs.
    mantissa, _, exponent = float.__repr__(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    point = int(exponent or 0) + len(whole) - (len(whole + fraction) - len(digits))
    digits = digits.rstrip("0")
    if not digits:
        return "0"
    sign = "-" if value < 0 else ""
    if not -6 < point <= 21:
        tail = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{tail}e{point - 1:+d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    digits = digits.ljust(point, "0")
    return sign + digits[:point] + ("." + digits[point:] if digits[point:] else "")


def fingerprint(value: object, *, sort_keys: bool = False) -> str:
    """Return the 8-digit fingerprint of a value: FNV-1a over its compact JSON.

    >>> fingerprint({"scanDays": 3, "empty": True})
    '0dc845e1'
    """
    return fnv1a(compact_json(value, sort_keys=sort_keys))


def job_run_id(command: str, full_fingerprint: str) -> str:
    """Return `job-{command}-{fingerprint8}`; deterministic, not unique per execution.

    >>> job_run_id("storage-re-index", "500-50-0.95"), job_run_id("distill", "::14:false")
    ('job-storage-re-index-500-50-0', 'job-distill-14-false')
    """
    safe_command = _dashed(command, _COMMAND_CHARACTERS).strip("-")
    short = _dashed(full_fingerprint, _LETTERS).lstrip("-")[:8].rstrip("-")
    return f"job-{safe_command}-{short or '0'}"


def execution_id(base: str, execution: int) -> str:
    """Return the id of a further execution of the same input, marked `~2`, `~3` and so on.

    >>> execution_id("job-a-0dc845e1", 1), execution_id("job-a-0dc845e1", 2)
    ('job-a-0dc845e1', 'job-a-0dc845e1~2')
    """
    return base if execution <= 1 else f"{base}~{execution}"


def task_id(text: str) -> str:
    """Return the sanitised task id of a run card. Raises InvalidIdError when nothing is left.

    >>> task_id("  Weekly Report / EU  ")
    'weekly-report-eu'
    """
    dashed = _dashed(text.strip(), _TASK_CHARACTERS)
    while "--" in dashed:
        dashed = dashed.replace("--", "-")
    cleaned = dashed.strip("-").lower()
    if not cleaned.strip("."):
        raise InvalidIdError(text, "nothing is left of it after cleaning")
    return cleaned


def check_run_id(text: str) -> str:
    """Return the text when it can be a run id as it stands, else raise InvalidIdError."""
    if not text:
        raise InvalidIdError(text, "it is empty")
    if len(text) > MAX_ID_LENGTH:
        raise InvalidIdError(text, f"it has {len(text)} characters")
    odd = sorted({letter for letter in text if letter not in _TASK_CHARACTERS and letter != "~"})
    if odd:
        raise InvalidIdError(text, f"it contains {' '.join(map(repr, odd))}")
    if not text.strip("."):
        raise InvalidIdError(text, "as a folder name it would mean another folder")
    if text[0] in "-~":
        raise InvalidIdError(text, f"it starts with {text[0]!r}, like an option")
    return text


def is_run_id(text: str) -> bool:
    """Say whether the text can be a run id as it stands."""
    try:
        check_run_id(text)
    except InvalidIdError:
        return False
    return True


def _dashed(text: str, allowed: frozenset[str] | set[str]) -> str:
    """Replace each run of characters that are not allowed by one dash."""
    pieces: list[str] = []
    for letter in text:
        if letter in allowed:
            pieces.append(letter)
        elif not pieces or pieces[-1] != "\0":
            pieces.append("\0")
    return "".join(pieces).replace("\0", "-")


def job_of_run(run_id: str) -> str | None:
    """Return the id of the job that a run is of; None for a run of no job.

    >>> job_of_run("queue-mail-01a22f23-ad65-79f3-b004-c5666ab70bf6")
    '01a22f23-ad65-79f3-b004-c5666ab70bf6'
    """
    base = run_id.partition("~")[0]
    parts = base.split("-")
    if parts[0] != "queue" or len(parts) < 7:
        return None
    tail = parts[-5:]
    if [len(part) for part in tail] != [8, 4, 4, 4, 12]:
        return None
    return "-".join(tail) if set("".join(tail)) <= set("0123456789abcdef") else None
