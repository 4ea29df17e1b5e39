"""The `kperfir` command: one file per verb."""
