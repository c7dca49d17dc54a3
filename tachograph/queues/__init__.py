"""Queues of jobs: enqueue, lease, work, look, repair. Use cases only; storage comes in by ports."""
