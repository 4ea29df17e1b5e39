"""Kernels with their launches in a folder: compiled here, run where there is a GPU and no compiler.

    kperfir bundle create -o kit script.py     # runs the script on the SIMT device, compiles what it launches
    python kit/run.pyz kit                     # needs Python, NumPy and the CUDA driver
    kperfir bundle collect kit                 # the .kpf files of that run

`manifest`, `values`, `cuda`, `execute` and `__main__` are all that a run needs; they import nothing but
`kperfir.errors` and NumPy, so that they fit into the bundle itself. `record`, `create` and `simt` need Triton,
`collect` the rest of kperfir.
"""
