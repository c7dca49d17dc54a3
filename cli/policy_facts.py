"""`tacho policy facts`: what the conditions of rules may be about."""

from __future__ import annotations

from tachograph.cli.options import Spec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from tachograph.cli.options import Params
    from tachograph.cli.output import Output

SPEC = Spec(
    "List the facts that rules can ask for.",
    details="""A fact that nobody stated and nothing counted is unsaid, and a condition on it does
not hold; those marked 0 are 0 then. Derived facts follow from others and cannot be stated.""",
)


def run(_params: Params, out: Output) -> None:
    """Print every fact with its kind and meaning."""
    from tachograph.domain.facts import DERIVED, MEANINGS, Facts

    nothing = Facts()
    rows = [
        (name, kind, nothing.value(name), name in DERIVED, meaning)
        for name, (kind, meaning) in {**MEANINGS, **DERIVED}.items()
    ]
    if out.json:
        names = ("name", "kind", "unsaid", "derived", "meaning")
        out.document([dict(zip(names, row, strict=True)) for row in rows])
        return
    out.table(
        ("FACT", "KIND", "UNSAID", "MEANING"),
        [
            (name, kind, "-" if unsaid is None else str(unsaid), f"{meaning}{_mark(derived)}")
            for name, kind, unsaid, derived, meaning in rows
        ],
    )


def _mark(derived: bool) -> str:
    return " (derived)" if derived else ""
