"""What a project has declared about its maintenance: steps, gates, bounds. Reads no file.

A plan that exists is sound: every dependency is a step, none waits for itself, and the steps
stand in an order in which each comes after those it depends on.
"""

from __future__ import annotations

from tachograph.domain import errors
from tachograph.domain.records import _Fields

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

CYCLE = "cycle"
NIGHTLY = "nightly"
FULL = "full"
"""Both tiers in one run."""
STEP = "step"
"""One step alone."""

PROVIDER_TIERS = ("nano", "maintenance", "default", "heavy", "embed")
"""Tiers of language models that a provider serves: they share its rate limit."""
LLM_TIERS = ("none", "local", *PROVIDER_TIERS)

HOUR_US = 3_600_000_000
MINUTE_US = 60_000_000
LONGEST_SECONDS = 100 * 366 * 86_400
"""No length of time is longer: clocks and timers of some machines could not count it."""
_CADENCES = (
    (20 * HOUR_US, "every night"),
    (44 * HOUR_US, "~every other night"),
    (68 * HOUR_US, "~every 3rd night"),
    (5 * 24 * HOUR_US, "weekly"),
    (25 * 24 * HOUR_US, "monthly"),
)


class Gate(_Fields):
    """When a step is switched on.

    Always or never (`opened`), or by the environment variable `variable`: when it is `equals`;
    without `equals`, when it is set and not empty.
    """

    __slots__ = ("equals", "opened", "variable")

    def __init__(
        self, *, opened: bool = True, variable: str | None = None, equals: str | None = None
    ) -> None:
        self.opened = opened
        self.variable = variable
        self.equals = equals

    def is_open(self, environment: Mapping[str, str]) -> bool:
        """Say whether the step is switched on.

        >>> Gate(variable="SENSORS", equals="1").is_open({"SENSORS": "0"})
        False
        """
        if self.variable is None:
            return self.opened
        found = environment.get(self.variable, "")
        return found == self.equals if self.equals is not None else bool(found)

    @property
    def conditional(self) -> bool:
        """Whether it can be shut at all."""
        return self.variable is not None or not self.opened

    def __str__(self) -> str:
        if self.variable is None:
            return "open" if self.opened else "gate = false"
        wanted = "is set" if self.equals is None else f"is {self.equals!r}"
        return f"open when {self.variable} {wanted}"


class MaintenanceStep(_Fields):
    """A step of maintenance, as it was declared.

    `guard_us` is how long it is not due again after it did its work; 0 for always due. `once`
    says that it is done for good when it has done its work. `command` is what is run; a `job` is
    a Python function instead. With neither, nobody has said how to run it.
    """

    __slots__ = (
        "command",
        "depends_on",
        "environment",
        "expect_output",
        "gate",
        "guard_us",
        "job",
        "llm",
        "name",
        "once",
        "tier",
        "timeout_seconds",
        "working_folder",
    )

    def __init__(
        self,
        name: str,
        tier: str,
        *,
        guard_us: int = 0,
        llm: str = "none",
        depends_on: Sequence[str] = (),
        gate: Gate | None = None,
        once: bool = False,
        timeout_seconds: float | None = None,
        command: Sequence[str] | None = None,
        job: str | None = None,
        working_folder: str | None = None,
        environment: Mapping[str, str] | None = None,
        expect_output: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.tier = tier
        self.guard_us = guard_us
        self.llm = llm
        self.depends_on = list(depends_on)
        self.gate = gate or Gate()
        self.once = once
        self.timeout_seconds = timeout_seconds
        self.command = None if command is None else list(command)
        self.job = job
        self.working_folder = working_folder
        self.environment = dict(environment or {})
        self.expect_output = list(expect_output)

    @property
    def uses_provider(self) -> bool:
        """Whether it asks a language model that a provider serves."""
        return self.llm in PROVIDER_TIERS

    @property
    def has_runner(self) -> bool:
        """Whether anybody has said how to run it."""
        return self.command is not None or self.job is not None

    @property
    def cadence(self) -> str:
        """How often it is done, in words."""
        return cadence(self.guard_us, once=self.once)


class MaintenancePlan(_Fields):
    """The steps of a project, in an order that their dependencies allow, and the bounds of a run.

    Raises PlanError for steps that cannot be: see there.
    """

    __slots__ = (
        "auto_resume",
        "cooldown_seconds",
        "max_runtime_seconds",
        "rate_limit_max_retries",
        "steps",
    )

    def __init__(
        self,
        steps: Sequence[MaintenanceStep] = (),
        *,
        max_runtime_seconds: float | None = None,
        rate_limit_max_retries: int = 2,
        cooldown_seconds: float = 30.0,
        auto_resume: bool = False,
    ) -> None:
        self.steps = _ordered(_checked(steps))
        self.max_runtime_seconds = max_runtime_seconds
        self.rate_limit_max_retries = rate_limit_max_retries
        """After so many steps in a row that a rate limit stopped, no more providers are asked."""
        self.cooldown_seconds = cooldown_seconds
        """Pause between two steps that ask a provider."""
        self.auto_resume = auto_resume

    def step(self, name: str) -> MaintenanceStep:
        """Return a step. Raises MaintenanceStepNotFoundError, which names those there are."""
        for step in self.steps:
            if step.name == name:
                return step
        there_are = ", ".join(self.names) or "none"
        raise errors.MaintenanceStepNotFoundError(name, _near(name, self.names), there_are)

    @property
    def names(self) -> list[str]:
        """Names of all steps, in order."""
        return [step.name for step in self.steps]

    def chosen(
        self,
        tier: str,
        *,
        include: Collection[str] = (),
        exclude: Collection[str] = (),
    ) -> list[MaintenanceStep]:
        """Return the steps of a tier (or of both), those included only, those excluded not.

        Raises MaintenanceStepNotFoundError for a name that no step has, and PlanError for one
        that is included, and of the other tier.
        """
        for name in (*include, *exclude):
            self.step(name)
        found = [step for step in self.steps if tier in (FULL, step.tier)]
        of_tier = {step.name for step in found}
        for name in include:
            if name not in of_tier:
                raise errors.PlanError(
                    f"step {name!r} is of the tier {self.step(name).tier}, not {tier}"
                )
        return [
            step
            for step in found
            if (not include or step.name in include) and step.name not in exclude
        ]


def cadence(guard_us: int, *, once: bool = False) -> str:
    """Return how often a step is done, in words.

    >>> cadence(44 * HOUR_US), cadence(0, once=True)
    ('~every other night', 'one-time')
    """
    if once or guard_us <= 0:
        return "one-time" if once else "always"
    for longest, words in _CADENCES:
        if guard_us <= longest:
            return words
    return f"every {guard_us // (24 * HOUR_US)} days"


def _checked(steps: Sequence[MaintenanceStep]) -> list[MaintenanceStep]:
    times: dict[str, int] = {}
    for step in steps:
        times[step.name] = times.get(step.name, 0) + 1
    for name, number in times.items():
        if number > 1:
            raise errors.PlanError(f"there are {number} steps named {name!r}")
    for step in steps:
        if step.command is not None and step.job is not None:
            raise errors.PlanError(f"step {step.name!r} has a command and a job; give one")
        if step.command is not None and not (step.command and step.command[0].strip()):
            raise errors.PlanError(f"step {step.name!r} has a command without a program")
        for other in step.depends_on:
            if other not in times:
                hint = _near(other, list(times))
                raise errors.PlanError(
                    f"step {step.name!r} depends on {other!r}, which is no step.{hint}"
                )
    return list(steps)


def _ordered(steps: list[MaintenanceStep]) -> list[MaintenanceStep]:
    """Return the steps as declared, but each after those it depends on."""
    by_name = {step.name: step for step in steps}
    done: dict[str, MaintenanceStep] = {}
    for step in steps:
        # Those that are being placed, each for the one before it, and what they still wait for.
        above = {step.name: iter(step.depends_on)} if step.name not in done else {}
        while above:
            name, waits_for = next(reversed(above.items()))
            other = next((each for each in waits_for if each not in done), None)
            if other is None:
                done[name] = by_name[name]
                del above[name]
            elif other in above:
                names = list(above)
                circle = " → ".join((*names[names.index(other) :], other))
                raise errors.PlanError(f"steps depend on each other in a circle: {circle}")
            else:
                above[other] = iter(by_name[other].depends_on)
    return list(done.values())


def _near(name: str, names: Sequence[str]) -> str:
    from difflib import get_close_matches

    found = get_close_matches(name, names, 1)
    return f" Did you mean {found[0]!r}?" if found else ""
