"""The files that `tacho workspace install` puts into a workspace: standard library only."""
