"""The compiled code of the solver.

    records    the arrays, by name
    boxes      where safe play can go: bounds, height maps, reached cells
    dense      layers held cell by cell: write their stage games out; one player
    sparse     layers held as lists, the same
    safe_sets  the sets of safe joint actions, each held once
    shielding  the numbers of safe pairs, and back
    units      what utilities of a stage game are counted in
    simplex    pivots, certificates
    stage      one stage game: pure, first level, tie levels
    lockstep   plain stage games, eight at once, or one with several threads of a GPU
    written    written stage games: solve, and file the answers
    phases     what the threads of a GPU do
    nash/      written stage games, Nash

Nothing here allocates in a loop. Arithmetic is done in the order of the source: no fast
maths, no library.
"""
