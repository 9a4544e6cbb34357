"""Work of the device that the result does not need."""

from __future__ import annotations

from stepscope.registers.entry import policy

DENSE_ROWS_LEAST = policy(
    "DENSE_ROWS_LEAST",
    4096,
    unit="rows of a square matrix",
    why="that no step trains: below that a dense product costs little, and layers have such weights",
)
DENSE_TIMES_COLUMNS = policy(
    "DENSE_TIMES_COLUMNS",
    8,
    unit="× the columns of the other matrix",
    why="graphs have many more nodes than features",
)
NEIGHBOURS_LEAST = policy(
    "NEIGHBOURS_LEAST",
    8,
    unit="entries of a row that are not zero",
    why="citations, molecules and meshes have so many edges for each node",
)
NEIGHBOURS_MOST = policy(
    "NEIGHBOURS_MOST",
    64,
    unit="entries of a row that are not zero",
    why="social and retail graphs have so many; two jobs of a blind trial needed 8 and about 60",
)
UNSURE_ZEROS = policy(
    "UNSURE_ZEROS",
    0.7,
    unit="certainty",
    why="a profile has no values: the matrix may be full after all",
)
