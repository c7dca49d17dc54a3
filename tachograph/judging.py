"""What a session needs only when its run is judged: the policy, and the files it was to make."""

from __future__ import annotations

from tachograph.domain.default_policy import default_policy, known_policy
from tachograph.domain.expectations import Expectations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tachograph.domain.facts import Facts
    from tachograph.domain.policy import Policy
    from tachograph.domain.run import Run
    from tachograph.payloads import Payloads


def kept_policy(
    given: Policy | None, in_force: Callable[[], Policy] | None, payloads: Payloads
) -> Policy:
    """Return the policy to judge by, with its rules stored where the log needs them.

    A policy that comes with Tachograph is known for ever; the rules of any other one become a
    blob, so that its verdicts can be judged again years later.
    """
    policy = given or (default_policy() if in_force is None else in_force())
    known = known_policy(policy.id, policy.version)
    if policy.stored is not None or (known is not None and known.digest == policy.digest):
        return policy
    return policy.kept(payloads.store_apart(policy.to_fields(), "policy"))


def with_files(facts: Facts, run: Run) -> Facts:
    """Return the facts with what is there, at this moment, of the files a run was to make."""
    if not (run.expectations or {}).get("files"):
        return facts
    from tachograph.expecting import facts_of_files

    return facts.over(facts_of_files(run.expectations))


def expected(run: Run, said: Expectations, files: Sequence[str]) -> Expectations:
    """Return what a run is measured by once this is said too; `files` as they are now."""
    known = said.over(Expectations.from_fields(run.expectations))
    if not files:
        return known
    from tachograph.expecting import with_files as traced

    return traced(known.to_fields(), files)
