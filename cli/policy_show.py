"""`tacho policy show`: the rules that judge runs."""

from __future__ import annotations

from tachograph.cli.options import Argument, Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

FILE = Argument("file", "A policy file; without it, the policy in force.", required=False,
                metavar="FILE", complete="path")  # fmt: skip

SPEC = Spec(
    "Show the rules of a gate policy, in the order in which they are tried.",
    FILE,
    details="""The first rule whose conditions all hold decides. The policy in force is named by
TACHO_POLICY or by the setting `policy`; without either it is the one that comes with
Tachograph.""",
)


def run(params: Params, out: Output) -> None:
    """Print the rules."""
    from tachograph.cli import policies

    policy, origin = policies.meant(params.file, out)
    if out.json:
        out.document(policies.document(policy, origin))
        return
    out.note(f"{policy.id}, version {policy.version}, from {origin}; digest {policy.digest}")
    out.table(policies.COLUMNS, policies.rows(policy))
