"""What the paper prints: the rows of its Table 4, and the numbers of Tables 4 to 6."""

from __future__ import annotations

from dataclasses import dataclass

from radii_papers._tables import paper_rows

PAPER_SECONDS = 7200.0
"""The paper's time limit of a row and method."""

TIMED_OUT = "-TO-"
ROBUST = "robust"


@dataclass(frozen=True, slots=True)
class BenchmarkRow:
    """A row of the paper's Table 4: its ID, name, |C|, |A|, |X|, image side, alpha, eps."""

    number: int
    name: str
    classifiers: int
    attacks: int
    points: int
    side: int
    alpha: float
    eps: float

    @property
    def ensemble(self) -> tuple[str, int, int, int]:
        """What tells the paper's ensembles and points apart."""
        return self.name, self.classifiers, self.points, self.side


_ROWS = """
1 mnist_0_1 3 2 4 7 0.1 1000
2 mnist_0_1 3 2 4 7 0.2 100
3 mnist_0_1 3 2 4 8 0.3 1000
4 mnist_0_1_2convs 3 2 4 8 0.1 1000
5 mnist_0_1_2convs 3 2 4 8 0.2 1000
6 mnist_0_1_2convs 3 2 4 8 0.4 100
7 mnist_0_1_2convs 3 2 4 8 0.9 100
8 mnist_0_1_2convs 3 3 4 8 0.9 100
9 mnist_0_1 3 2 4 8 0.4 1000
10 mnist_0_1 3 2 4 8 0.9 1000
11 mnist_0_1 3 3 4 8 0.9 60
12 mnist_0_1 3 4 4 8 0.9 60
13 mnist_3_6 4 2 2 8 0.1 150
14 mnist_3_6 4 2 3 8 0.1 150
15 mnist_4_5 3 2 4 10 0.1 1000
16 mnist_4_5 3 2 4 10 0.2 100
17 mnist_4_5 3 4 4 10 0.3 50
18 mnist_4_5 3 4 4 10 0.9 50
19 mnist_7_8 3 4 4 6 0.1 60
20 mnist_7_8 3 10 4 6 0.1 60
21 mnist_0_1 3 2 4 8 0.9 3.75
22 mnist_0_1 3 2 4 8 1.0 1000
23 mnist_0_1_3convs 3 2 4 8 0.1 1000
24 mnist_3_6 2 9 2 8 1.0 0.005
25 mnist_7_8 3 2 4 6 1.0 0.1
26 mnist_7_8 3 2 4 6 0.9 0.1
27 mnist_7_8 3 5 4 6 0.9 0.1
28 mnist_7_8 3 5 4 6 0.9 0.2
29 mnist_7_8 3 7 4 6 0.9 0.3
30 mnist_0_2 3 27 4 9 1.0 0.01
31 mnist_0_2 3 30 4 9 1.0 0.01
32 traffic_signs 3 1 4 10 0.1 1000
33 traffic_signs 3 2 4 10 0.2 1000
34 traffic_signs 3 2 4 10 1.0 0.01
35 traffic_signs 3 2 4 10 1.0 0.1
36 traffic_signs 3 2 4 10 1.0 0.2
37 traffic_signs 3 2 4 10 1.0 1
38 traffic_signs 3 2 4 10 1.0 2
"""

BENCHMARK = tuple(
    BenchmarkRow(int(number), name, int(c), int(a), int(x), int(side), float(alpha), float(eps))
    for number, name, c, a, x, side, alpha, eps in (
        line.split() for line in _ROWS.strip().splitlines()
    )
)

EXCERPT = (3, 19, 25, 34, 37)
"""Rows of the small scale: attacks and proofs, digits and signs, one whose value lies between."""


def _by_number(text: str) -> dict[int, tuple[str, ...]]:
    return {int(key[0]): cells for key, cells in paper_rows(text).items()}


TABLE_4 = _by_number(
    """
    1 -TO- - 285 0.25
    2 -TO- - 17 0.2002
    3 80 0.37 0.47 0.3002
    4 243 0.12 81.7 0.25
    5 -TO- - 92.45 0.25
    6 -TO- - 53.79 0.5
    7 -TO- - 55.19 0.9002
    8 -TO- - 86.34 1.00
    9 -TO- - 0.49 0.4002
    10 -TO- - 62.54 0.9002
    11 -TO- - 33.19 1.00
    12 -TO- - 52.94 1.00
    13 47 0.25 22.3 0.1005
    14 85 0.33 24.7 0.1003
    15 188 0.63 99.77 0.25
    16 -TO- - 34.6 0.25
    17 -TO- - 128.78 0.3002
    18 -TO- - 174.8 0.93
    19 -TO- - 18.36 0.25
    20 -TO- - 66.5 0.25
    21 -TO- - -TO- -
    22 -TO- - 21 robust
    23 -TO- - -TO- -
    24 -TO- - 13.31 robust
    25 -TO- - 2.56 robust
    26 -TO- - 4.5 robust
    27 -TO- - 9.37 robust
    28 -TO- - 18.48 robust
    29 -TO- - 187.4 robust
    30 -TO- - 114.99 robust
    31 -TO- - 146.98 robust
    32 -TO- - 71 0.25
    33 -TO- - 1437.1 0.25
    34 -TO- - 13.89 robust
    35 -TO- - 23.23 robust
    36 -TO- - 20.62 robust
    37 -TO- - 24.47 robust
    38 -TO- - 27.28 robust
    """
)
"""SMT: seconds and value; MILP: seconds and value."""

TABLE_5 = _by_number(
    """
    2 17 0.2002 17.97 1.00*
    3 0.47 0.3002 0.47 1.00*
    4 81.7 0.25 81.69 1.00*
    5 92.45 0.25 92.45 1.00*
    6 53.79 0.5 53.78 1.00*
    7 55.19 0.9002 55.18 1.00*
    8 86.34 1.00 86.33 1.00*
    9 0.49 0.4002 0.48 1.00*
    10 62.54 0.9002 62.53 1.00*
    11 33.19 1.00 33.18 1.00*
    12 52.94 1.00 52.93 1.00*
    13 22.30 0.1005 22.3 1.00*
    14 24.7 0.1003 24.7 1.00*
    15 99.77 0.25 99.7 1.00*
    16 34.6 0.25 34.61 1.00*
    17 128.78 0.3002 128.77 1.00
    18 174.8 0.93 174.8 1.00
    19 18.36 0.25 18.36 1.00
    20 66.5 0.25 66.54 1.00
    21 -TO- - -TO- -
    22 21 robust 1.47 robust
    23 -TO- - -TO- -
    24 13.31 robust 2.4 robust
    25 2.56 robust 1 robust
    26 4.5 robust 7.6 robust
    27 9.37 robust 981 robust
    30 114.99 robust 2.19 robust
    31 146.98 robust 2.49 robust
    32 71 0.25 71.08 1.00*
    33 1437.1 0.25 1177.39 1.00*
    34 13.89 robust 3.91 robust
    35 23.23 robust 5.5 robust
    36 20.62 robust 8 robust
    37 24.47 robust 18.7 robust
    38 27.28 robust 15 robust
    """
)
"""MILP: seconds and value; MaxMILP: seconds and value, with a star where proven optimal."""

TABLE_6 = _by_number(
    """
    1 0.33 0.75 1.00*
    2 0.33 0.75 1.00*
    3 0.33 0.75 1.00*
    4 0.33 0.75 1.00*
    5 0.33 0.75 1.00*
    6 0.33 0.25 1.00*
    7 0.33 0.25 1.00*
    8 0.33 0.25 1.00*
    9 0.33 0.75 1.00*
    10 0.33 0.50 1.00*
    11 0.33 0.50 1.00*
    12 0.33 0.50 1.00*
    13 0.25 0.50 1.00*
    14 0.25 0.66 1.00*
    15 0.33 0.75 1.00*
    16 0.33 0.75 1.00*
    17 0.33 0.25 1.00
    18 0.33 0.50 1.00
    19 0.33 0.75 1.00
    20 0.33 0.75 1.00
    32 0.33 0.50 1.00*
    33 0.33 0.50 1.00*
    """
)
"""The values of UA, BDA and MaxMILP."""


def paper_value(text: str) -> float | None:
    """A value as the paper prints it, without its star; None where there is none."""
    try:
        return float(text.rstrip("*"))
    except ValueError:
        return None
