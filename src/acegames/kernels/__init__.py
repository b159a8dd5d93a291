"""The compiled code of the solver.

    records       the arrays, by name
    boxes         where safe play can go: bounds, height maps, reached cells
    dense         layers held cell by cell: write their stage games out; one player
    sparse        layers held as lists, the same
    lookup        stored answers, safe pairs and safe sets, in batches
    scaling       what utilities of a stage game are counted in
    simplex       pivots, certificates
    stage         one stage game: pure, first level, tie levels
    regular       the steps of regular stage programs, for each thread of a warp
    lockstep      regular stage games, eight at once, or one with several threads of a GPU
    batches       the stage games of cells: write out, solve, store the answers
    device        what the threads of a GPU do
    nash_*        Nash equilibria of stage games
    lanes         eight numbers at a time
    intrinsics    bits, atomic counters and warps

Nothing here allocates in a loop. Arithmetic is done in the order of the source: no fast
maths, no library.

Axes: T time, S state, B box, R row (one legal joint action of one state), K outcome, D constraint
that boxes count, M constraint, N player, G stage game, Q question, E entry of a mixed strategy.
"""
