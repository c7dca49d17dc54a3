"""`python -m tachograph` is `tacho`."""

from __future__ import annotations

import sys

from tachograph.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
