"""Times the opening and summing of a sweep's data set of a million rows in polars.

    chappe sweep bench/sweep/ten.toml --grid protocol.variant=paper,more --seeds 1..100 --out ten
    python bench/sweep/million.py ten

The files of the sweep are copied until there are as many rows: 1,112 files of 900 rows here. Prints the seconds of each of five
passes, and exits with 1 if the median is above 2.
"""

import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path

import polars

ROWS = 1_000_000
LIMIT_S = 2.0


def fill(folder: Path, cells: list[Path]) -> int:
    rows = {cell: polars.scan_parquet(cell).select(polars.len()).collect().item() for cell in cells}
    total, copy = 0, 0
    while total < ROWS:
        for cell in cells:
            shutil.copyfile(cell, folder / f"{copy}-{cell.name}")
            total += rows[cell]
        copy += 1
    return total


def main() -> int:
    cells = sorted(Path(sys.argv[1], "cells").glob("*.parquet"))
    if not cells:
        print(f"{sys.argv[1]} is no folder of a sweep", file=sys.stderr)
        return 3
    with tempfile.TemporaryDirectory() as folder:
        total = fill(Path(folder), cells)
        took = []
        for _ in range(5):
            begun = time.perf_counter(), time.process_time()
            table = polars.read_parquet(f"{folder}/*.parquet")
            sums = table.group_by("protocol.variant").agg(polars.col("goodput_bps").sum())
            assert len(table) == total and len(sums) >= 1
            took.append((time.perf_counter() - begun[0], time.process_time() - begun[1]))
            print(f"{total} rows: {took[-1][0]:.2f} s, {took[-1][1]:.2f} s of processor")
    return int(statistics.median(wall for wall, _ in took) > LIMIT_S)


if __name__ == "__main__":
    sys.exit(main())
