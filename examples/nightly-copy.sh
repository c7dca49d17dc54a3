#!/usr/bin/env bash
# A shell job that survives kill -9: run it again and it goes on after its last finished part.
#
#   examples/nightly-copy.sh FROM TO
set -euo pipefail

from=$1
to=$2
mkdir -p "$to"

# This shell owns the run: when it dies, the run reads `interrupted` and may be resumed.
eval "$(tacho run start nightly-copy --input from="$from" --input to="$to" --owner-pid $$ --export)"

# The list of files is fixed by the first attempt, so that a resume works on the same parts.
files=$(tacho run effect list-files --idempotent -- sh -c "cd '$from' && ls | sort")
count=$(echo "$files" | wc -l)

tacho run phase start copy --batches "$count"
for part in $(tacho run batch copy --pending); do
    name=$(echo "$files" | sed -n "$((part + 1))p")
    cp "$from/$name" "$to/$name"
    tacho run batch copy "$part" --inputs 1 --parsed 1 --output "$name"
done
tacho run phase end copy

tacho run judge --inputs "$count" --outputs "$(ls "$to" | wc -l)" > /dev/null
tacho run finish
