"""What it takes to start a run from the command line: inputs, owner, variables. Starts none."""

from __future__ import annotations

from tachograph.cli.options import UsageError
from tachograph.cli.values import pairs, read_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from tachograph.bootstrap import Services
    from tachograph.cli.options import Params
    from tachograph.domain.owner import Owner


def inputs(params: Params) -> dict[str, Any]:
    """Return the inputs of `--inputs` and `--input` together; the single ones win."""
    given = {} if params.inputs is None else read_json(params.inputs, "--inputs")
    if not isinstance(given, dict):
        raise UsageError('--inputs is no JSON object. Write {"name": value}.')
    return {**given, **pairs(params.input, "--input")}


def takeover_reason(params: Params) -> str | None:
    """Return why a living owner is robbed, None when it is not to be."""
    if params.takeover != (params.reason is not None):
        raise UsageError("--takeover and --reason go together: say why the run is taken over.")
    reason: str | None = params.reason
    return reason


def owner(params: Params, services: Services) -> Owner:
    """Return who owns the run: the named process, nobody, or the calling shell."""
    from tachograph.infra.callers import calling_shell
    from tachograph.infra.processes import nobody

    if params.unowned and params.owner_pid is not None:
        raise UsageError("--unowned and --owner-pid exclude each other.")
    pid = params.owner_pid if params.owner_pid is not None else calling_shell()
    return nobody() if params.unowned or pid is None else services.owner(pid)


def environment(store: str, run_id: str, epoch: int) -> dict[str, str]:
    """Return the variables by which later commands know the attempt."""
    return {"TACHO_STORE": store, "TACHO_RUN_ID": run_id, "TACHO_EPOCH": str(epoch)}


def quoted(text: str) -> str:
    r"""Return a text as one word of shell code.

    >>> print(quoted("it's"))
    'it'\''s'
    """
    return "'" + text.replace("'", "'\\''") + "'"
