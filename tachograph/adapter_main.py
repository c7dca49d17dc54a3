"""`python -m tachograph.adapter_main module:function` runs a function as a resume adapter."""

from __future__ import annotations

import os
import sys

from tachograph.adapting import call

if __name__ == "__main__":
    sys.exit(call(sys.argv[1:], os.environ))
