"""The rules of the advisor, one family per file; `kperfir.advice.registry` lists them."""
