#!/usr/bin/env python3
"""Writes a table and a picture of the time that collectives take in the emulator.

    collective_table.py [FOLDER]     writes collectives.tsv and collectives.svg (default: build)

The picture has a panel for each operation on 4x4, 4x4x2 and 4x4x4 chips, on 4x4 with four ranks on each chip, and over 32 and
128 topology domains: size from left to right, how many times the physical bound it takes from bottom to top, both logarithmic,
a line for each algorithm.
"""

import collections
import csv
import math
import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("TAHOMA_BIN", ROOT / "build/release/bin")).resolve()
COLOURS = {"mesh": "#7a7a7a", "rdh": "#1f6fb4", "ring": "#d1731d", "kangaring": "#9c3fa8",
           "tree": "#2f8f4e", "hier": "#8a3fa0"}
PANELS = (("4x4x1", "1"), ("4x4x2", "1"), ("4x4x4", "1"), ("4x4x1", "4"), ("32x(4x4x4)", "1"),
          ("128x(4x4x1)", "1"))
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, GAP = 300, 190, 46, 34, 34, 16
RATIO_MAX = 1000


def panel(title, lines, left, top):
    """One set of axes with its lines; `lines` maps an algorithm to (bytes, ratio) pairs."""
    plot_width, plot_height = WIDTH - LEFT - GAP, HEIGHT - TOP - BOTTOM

    def x_of(size):
        return left + LEFT + plot_width * (math.log2(size) - 10) / 20

    def y_of(ratio):
        return top + TOP + plot_height * (1 - math.log10(min(ratio, RATIO_MAX)) / math.log10(RATIO_MAX))

    yield f'<text x="{left + LEFT}" y="{top + 22}" font-size="12" font-weight="bold">{title}</text>'
    for ratio in (1, 10, 100, 1000):
        yield (f'<line x1="{x_of(1024):.1f}" x2="{x_of(2**30):.1f}" y1="{y_of(ratio):.1f}" y2="{y_of(ratio):.1f}" '
               'stroke="#dddddd"/>')
        yield f'<text x="{left + LEFT - 6}" y="{y_of(ratio) + 4:.1f}" text-anchor="end">{ratio}x</text>'
    for exponent, label in ((10, "1 KiB"), (20, "1 MiB"), (30, "1 GiB")):
        yield f'<text x="{x_of(2**exponent):.1f}" y="{top + HEIGHT - 14}" text-anchor="middle">{label}</text>'
    for algorithm, points in lines.items():
        path = " ".join(f"{x_of(size):.1f},{y_of(ratio):.1f}" for size, ratio in points)
        yield f'<polyline fill="none" stroke="{COLOURS[algorithm]}" stroke-width="2" points="{path}"/>'


def draw(rows):
    lines = collections.defaultdict(lambda: collections.defaultdict(list))
    for row in rows:
        if (row["chips"], row["ranks"]) in PANELS:
            key = row["operation"], row["chips"], row["ranks"]
            lines[key][row["algorithm"]].append((int(row["bytes"]), float(row["ratio"])))
    operations = list(dict.fromkeys(operation for operation, _, _ in lines))
    width, height = WIDTH * len(PANELS), HEIGHT * len(operations) + 30
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
           'font-family="sans-serif" font-size="10">')
    yield '<rect width="100%" height="100%" fill="#ffffff"/>'
    for i, (algorithm, colour) in enumerate(COLOURS.items()):
        yield f'<text x="{LEFT + 90 * i}" y="20" font-size="13" fill="{colour}">{algorithm}</text>'
    for row, operation in enumerate(operations):
        for column, (shape, ranks) in enumerate(PANELS):
            if (operation, shape, ranks) not in lines:
                continue
            title = f"{operation} on {shape.removesuffix('x1')}" + (", 4 ranks" if ranks == "4" else "")
            yield from panel(title, lines[operation, shape, ranks], column * WIDTH, 30 + row * HEIGHT)
    yield "</svg>"


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build")
    table = subprocess.run([BIN.parent / "bench/collective_table"], check=True, stdout=subprocess.PIPE, text=True).stdout
    (folder / "collectives.tsv").write_text(table)
    rows = list(csv.DictReader(table.splitlines(), delimiter="\t"))
    (folder / "collectives.svg").write_text("\n".join(draw(rows)) + "\n")
    print(f"{len(rows)} rows in {folder}/collectives.tsv, the picture in {folder}/collectives.svg")


if __name__ == "__main__":
    main()
