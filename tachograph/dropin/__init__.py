"""The drop-in for task-recovery workspaces: their scripts, over the ledger. Imports nothing."""
