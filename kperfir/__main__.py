"""`python -m kperfir`: the same as the `kperfir` command."""

import sys

from kperfir.cli.main import main

sys.exit(main())
