"""Read the log of a cron job: the parts of its steps, and what the markers in them say. No I/O.

A log may be long and most of its lines say nothing: each line is looked at once, however many
steps there are.
"""

from __future__ import annotations

from bisect import bisect_left

from tachograph.domain import log_markers
from tachograph.domain.exit_ledger import is_time
from tachograph.domain.log_markers import MARKERS, Marker
from tachograph.domain.outcome import is_command_status
from tachograph.domain.text_lines import text_lines

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

OURS = "HM_HARNESS=tachograph"
"""Line in the head of a log that our harness has written."""
HEAD_LINES = 20
"""Lines that are the head of a log: what is printed below them claims nothing."""
STEPS = "--- steps ---"
"""Line of a log below which its steps print."""
VALIDATION = "--- validate-cron-exit ---"
"""Line of a log below which the harness prints its own verdict."""
CUT = "--- bytes not read: {} ---"
"""Stands in a text for the middle of a log that was too long."""
_CUT = CUT.partition("{")[0]

LINES_AFTER = 50
LINES_BEFORE = 5
MOST_UNEXPLAINED = 20
LONGEST_LINE = 200
LAST_LINES = 1000
"""Where a log says how its wrapper ended, if it says so."""
_LENGTH_OF_TIME = 20
_WORD = r"\b(status|semantic)=([a-z][a-z_]*)|\b(semantic_empty)\b"
_GOOD = ("ok", "started", "success", "skipped", "empty", "success_with_review", "monitoring")


def is_ours(text: str) -> bool:
    """Say whether our harness has written the log that begins with a text."""
    lines = text_lines(text[: HEAD_LINES * LONGEST_LINE])[:HEAD_LINES]
    return OURS in (lines[: lines.index(STEPS)] if STEPS in lines else lines)


def begins_with_time(line: str) -> bool:
    """Say whether a line begins with a time as rows of a ledger have it."""
    return line[:1].isdigit() and is_time(line[:_LENGTH_OF_TIME])


class Log:
    """The text of a cron log, and the parts of it that belong to steps.

    `work` is what was printed before the harness began to judge; `ours` says that ours wrote it:
    then nothing it says counts. A part is a range of lines of `work`; None stands for all.
    """

    def __init__(self, text: str, *, ours: bool = False) -> None:
        self.ours = ours or is_ours(text)
        self.lines = text_lines(text)
        end = len(self.lines)
        if VALIDATION in self.lines:  # the last one: a step may print such a line as well
            end -= self.lines[::-1].index(VALIDATION) + 1
        self.work = self.lines[:end]
        self.reached_steps = STEPS in self.lines
        self._lower: str | None = None
        self._named: dict[str, int] = {}
        self._hits: dict[str, list[int]] = {}

    @property
    def lower(self) -> str:
        """The work in small letters: rules know no case."""
        if self._lower is None:
            self._lower = "\n".join(self.work).lower()
        return self._lower

    def with_any(self, words: Sequence[str]) -> list[int]:
        """Return the numbers, from 0, of the lines that hold any of some words."""
        text = self.lower
        found: set[int] = set()
        for word in words:
            number, last, place = 0, 0, text.find(word)
            while place >= 0:
                number += text.count("\n", last, place)
                found.add(number)
                last = text.find("\n", place)
                place = -1 if last < 0 else text.find(word, last)
        return sorted(found)

    def hits(self, pattern: str) -> list[int]:
        """Return the numbers of the lines in which a regular expression is found; looks once."""
        if pattern not in self._hits:
            words = log_markers.words_in(pattern)
            lines = self.with_any(words) if words else range(len(self.work))
            self._hits[pattern] = [each for each in lines if found(pattern, self.work[each])]
        return self._hits[pattern]

    def has(self, pattern: str, part: range | None) -> bool:
        """Say whether a regular expression is found in a line of a part."""
        hits = self.hits(pattern)
        if part is None:
            return bool(hits)
        place = bisect_left(hits, part.start)
        return place < len(hits) and hits[place] < part.stop

    def look_for(self, steps: Iterable[str]) -> None:
        """Find the line that names each step first, all in one pass: `of_step` knows these."""
        names: dict[str, list[str]] = {}
        for step in dict.fromkeys(steps):
            for form in dict.fromkeys((step.lower(), step.lower().replace("-", "_"))):
                names.setdefault(form, []).append(step)
        self._named = {}
        for form, number in _first_lines(self.lower, names):
            for step in names[form]:
                self._named[step] = min(number, self._named.get(step, number))

    def of_step(self, step: str) -> range | None:
        """Return the part of a step: 5 lines before it is named, at most 50 after.

        None when it is nowhere named, or was not looked for. A line that begins with a time ends
        the part.
        """
        number = self._named.get(step)
        if number is None:
            return None
        end = number + 1
        for line in self.work[number + 1 : number + 1 + LINES_AFTER]:
            if begins_with_time(line) and not _is_named(step.lower(), line.lower()):
                break
            end += 1
        return range(max(0, number - LINES_BEFORE), end)


# A name ends at a blank, at `=`, at `:` or with the line; none of a letter, a digit, `_` and `-` is
# before it.
_BEFORE, _AFTER = r"(?<![\w-])", r"(?=[\s=:]|$)"


def _is_named(name: str, line: str) -> bool:
    import re

    if name not in line:
        return False
    return re.search(f"{_BEFORE}{re.escape(name)}{_AFTER}", line) is not None


def _first_lines(text: str, names: Collection[str]) -> Iterator[tuple[str, int]]:
    """Yield each name that a text holds, once, and the number of the line where it is first.

    Names of letters, digits, `_` and `-` are single words: all are found in one pass.
    """
    import re

    left = {name for name in names if re.fullmatch(r"[\w-]+", name)}
    number = last = 0
    for word in re.finditer(rf"[\w-]+{_AFTER}", text, re.MULTILINE) if left else ():
        if word[0] in left:
            number += text.count("\n", last, word.start())
            last = word.start()
            left.discard(word[0])
            yield word[0], number
            if not left:
                break
    for name in names:
        if not re.fullmatch(r"[\w-]+", name) and name in text:
            place = re.search(f"{_BEFORE}{re.escape(name)}{_AFTER}", text, re.MULTILINE)
            if place is not None:
                yield name, text.count("\n", 0, place.start())


def found(pattern: str, text: str) -> bool:
    """Say whether a regular expression is found, without regard to case."""
    import re

    return re.search(pattern, text, re.IGNORECASE) is not None


def first_marker(step: str, part: range | None, log: Log, *, alone: bool) -> Marker | None:
    """Return the first rule that holds for a step's part of the log, None for one without a part.

    Without one, rules of that very step look at the whole log; rules of every step do so only
    where it is the only one: other text is not known to be its.
    """
    named = part is not None or alone
    for marker in MARKERS:
        if not (marker.step == step or (marker.step is None and named)):
            continue
        if all(log.has(each, part) for each in marker.needs) and not any(
            log.has(each, part) for each in marker.unless
        ):
            return marker
    return None


def unknown_commands(log: Log) -> list[str]:
    """Return the commands that a log says there are none such."""
    import re

    text = "\n".join(log.work[each].lower() for each in log.with_any(("unknown command",)))
    return list(dict.fromkeys(re.findall(log_markers.UNKNOWN_COMMAND, text)))


def feature_is_off(log: Log) -> bool:
    """Say whether a log proves that the feature is switched off."""
    lines = [log.work[each] for each in log.with_any(log_markers.SWITCHED_OFF)]
    return any(found(each, line) for line in lines for each in log_markers.FEATURE_OFF)


def wrapper_exit_code(log: Log) -> int | None:
    """Return how the wrapper ended, by its log; None when that does not say so."""
    import re

    text = "\n".join(log.lines[-LAST_LINES:])
    for pattern in log_markers.WRAPPER_EXIT:
        codes = re.findall(pattern, text, re.MULTILINE)
        if codes:
            return int(codes[-1])
    return None


def unexplained_lines(log: Log, steps: Collection[str]) -> Iterator[tuple[int | None, str]]:
    """Yield number and text of lines that say how something went in words that no rule knows.

    Below what was not read of a long log, lines have no number. A log of ours has none such: the
    harness has read each status, and judged by the outcome.
    """
    import re

    if log.ours:
        return
    rules = re.compile("|".join(f"(?:{need})" for need in _needs(frozenset(steps))), re.IGNORECASE)
    cut = next((each for each, line in enumerate(log.work) if line.startswith(_CUT)), None)
    for at in log.with_any(("status=", "semantic")):
        line = log.work[at]
        if line.startswith("HM_RUN_SUMMARY ") or _is_row(line):
            continue  # rows that have rules of their own
        words = re.findall(_WORD, line)
        if any(_is_unknown(*each) for each in words) or (
            any(_is_bad(*each) for each in words) and not rules.search(line)
        ):
            yield at + 1 if cut is None or at < cut else None, line.strip()[:LONGEST_LINE]


def _needs(steps: Collection[str]) -> list[str]:
    """Return what rules of these steps, and those of every step, look for."""
    rules = (marker for marker in MARKERS if marker.step is None or marker.step in steps)
    return [need for marker in rules for need in marker.needs]


def _is_row(line: str) -> bool:
    """Say whether a line is, or begins with, what a row of a ledger begins with."""
    import re

    return begins_with_time(line) and re.match(r"\S+ \S+ exit=-?\d+( |$)", line) is not None


def _is_bad(_kind: str, value: str, empty: str) -> bool:
    """Say whether a word says that something went wrong, in words that are known."""
    return bool(empty) or (is_command_status(value) and not _is_good(value))


def _is_unknown(_kind: str, value: str, empty: str) -> bool:
    """Say whether nobody knows what a word on how something went means."""
    return not (empty or is_command_status(value) or _is_good(value))


def _is_good(value: str) -> bool:
    return value in _GOOD or value.startswith(("success_", "skipped_"))
