"""The bash files of a scaffold; the Python ones are modules of `installed`."""

from __future__ import annotations

RESUME = r"""#!/usr/bin/env bash
# Work of the task SLUG, phase by phase: it begins here, and goes on here when it was cut off.
#
# Write your own phases below. Each may run twice, so let it do the same again: write files whole,
# and leave what sends, pays or publishes to a person. `job.sh` starts the task; the watchdog runs
# this file as `task_resume.sh --task-id ID --timeout-seconds N`.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
workspace="${OPENCLAW_WORKSPACE:-$(cd "$here/../../.." && pwd)}"
task="SLUG"

# Each phase writes its result to "$1".
collect() { seq 0 9 >"$1"; }
analyze() { while read -r number; do echo $((number * number)); done <"$here/collect.txt" >"$1"; }
render() { wc -l <"$here/analyze.txt" >"$1"; }
phases=(collect analyze render)

runtime() { python3 "$workspace/scripts/task_runtime.py" "$@"; }

while [ $# -gt 0 ]; do
    case "$1" in
    --task-id) task="$2" && shift 2 ;;
    *) shift ;;
    esac
done

phase="$(runtime inspect "$task" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["task"]["phase"])')"
case " ${phases[*]} " in *" $phase "*) ;; *) phase="${phases[0]}" ;; esac
started=no
for name in "${phases[@]}"; do
    [ "$name" = "$phase" ] && started=yes
    [ $started = yes ] || continue
    runtime checkpoint "$task" --phase "$name" >/dev/null
    "$name" "$here/$name.draft"
    mv "$here/$name.draft" "$here/$name.txt"
    runtime checkpoint "$task" --artifact "$name=$here/$name.txt" >/dev/null
done
runtime complete "$task" >/dev/null
echo "{\"ok\": true, \"task_id\": \"$task\", \"status\": \"done\"}"
"""

JOB = r"""#!/usr/bin/env bash
# Start the task SLUG, or its next execution when it is finished; go on with it otherwise.
set -euo pipefail
here="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
runtime="${OPENCLAW_WORKSPACE:-$(cd "$here/../../.." && pwd)}/scripts/task_runtime.py"
title=TITLE

status="$(python3 "$runtime" inspect "SLUG" |
    python3 -c 'import json, sys; print(json.load(sys.stdin)["task"]["status"])')"
case "$status" in
done | cancelled | expired)
    python3 "$runtime" create --task-id "SLUG" --task-type adhoc --title "$title" --phase "" \
        --allow-auto-resume --resume-adapter "$here/task_resume.sh" >/dev/null
    ;;
esac
exec "$here/task_resume.sh"
"""
