"""What the assembler made of an instrumented kernel: did records stay around what they measure, what do they cost.

`regions` compares machine code with the PTX that it was made from, `resources` counts registers and the like, `builds`
finds and makes the code (the only part that imports Triton), `findings` keeps results beside a capture for `report`.
"""
