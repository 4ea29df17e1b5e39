"""The compiler side: pass pipelines and the hooks into Triton."""
