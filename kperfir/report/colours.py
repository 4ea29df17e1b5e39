"""A colour per kind of work, for the page and for pictures.

Okabe and Ito's, told apart by colour-blind readers as well: memory blue, matrix units green, waits red, shared memory
yellow. What only holds other regions is grey and lies under the work in it.
"""

COLOURS = {
    "kernel": "#b9bec6", "prologue": "#c9cdd4", "loop": "#c9cdd4", "epilogue": "#c9cdd4", "iteration": "#d8dbe0",
    "load": "#0072b2", "async_copy": "#0072b2", "tma": "#0072b2", "store": "#56b4e9", "atomic": "#56b4e9",
    "async_wait": "#d55e00", "wgmma_wait": "#d55e00", "mbarrier_wait": "#d55e00", "barrier": "#a14600",
    "dot": "#009e73", "wgmma": "#009e73", "tcgen05": "#009e73",
    "local_load": "#e69f00", "local_store": "#f0c35a", "convert_layout": "#f0e442",
    "reduce": "#cc79a7", "scan": "#cc79a7", "compute": "#dbb0c8", "between": "#c9b9c4",
    "call": "#9a86c0", "user": "#7b5aa6", "mark": "#222222",
}  # fmt: skip
