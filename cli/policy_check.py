"""`tacho policy check`: say whether a policy file can be used, and what is odd about it."""

from __future__ import annotations

from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "Check a policy file, and show its rules.",
    Argument("file", "The policy file.", metavar="FILE", complete="path"),
    details="""Ends with 2 when the file cannot be used, and says which rule is at fault. A rule
that can never decide, because an earlier one holds whenever it does, is a warning.""",
)


def run(params: Params, out: Output) -> None:
    """Print the rules, and a warning for each that can never decide."""
    from tachograph.cli import policies
    from tachograph.domain.policy import shadowed

    policy, origin = policies.meant(params.file, out)
    hidden = shadowed(policy)
    if out.json:
        unreached = [{"rule": rule.id, "decidedBy": earlier.id} for rule, earlier in hidden]
        out.document({**policies.document(policy, origin), "unreached": unreached})
    else:
        out.table(policies.COLUMNS, policies.rows(policy))
    for rule, earlier in hidden:
        out.warn(
            f"tacho: rule {rule.id!r} can never decide: whenever it holds, {earlier.id!r} "
            f"({policies.condition(earlier)}) holds before it."
        )
    if not hidden:
        out.note(f"{origin} can be used: {policy.id}, version {policy.version}.")
