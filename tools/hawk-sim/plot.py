#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Curves of flash hits against writes from the JSON of hawk-sim --replay: a page with an SVG.

	hawk-sim --replay agents --budget 10,20,40,60,80,100 --json | plot.py >curve.html
"""

import argparse
import html
import json
import sys

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 640, 420, 70, 50, 30, 120
COLOURS = {"ours": "#c0392b", "all": "#7f8c8d", "second": "#2980b9", "random": "#8e44ad",
           "formula": "#d68910", "oracle": "#1e8449", "dram": "#2c3e50"}


def curves(results):
    """Points (writes, share of accesses served from flash) of each policy."""
    found = {}
    for r in results:
        point = (r["writes"], 100 * r["flash_hits"] / r["accesses"])
        found.setdefault(r["policy"], []).append(point)
    return {policy: sorted(points) for policy, points in found.items()}


def steps(top):
    """About five round numbers up to the top of an axis."""
    size = 10 ** (len(str(int(top))) - 1) if top >= 1 else 0.1
    while top / size > 6:
        size *= 2
    return [i * size for i in range(int(top / size) + 1)]


def draw(found, title):
    most = max(x for points in found.values() for x, _ in points) or 1
    high = 1.1 * max(y for points in found.values() for _, y in points) or 1

    def at(x, y):
        return (LEFT + x / most * (WIDTH - LEFT - RIGHT),
                HEIGHT - BELOW - y / high * (HEIGHT - BELOW - ABOVE))

    out = [f'<!DOCTYPE html><title>{html.escape(title)}</title>',
           f'<svg width="{WIDTH}" height="{HEIGHT}" '
           'font-family="sans-serif" font-size="12">',
           f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="18">{html.escape(title)}</text>']
    for x in steps(most):
        px, py = at(x, 0)
        out.append(f'<text x="{px:.0f}" y="{py + 18:.0f}" text-anchor="middle">{x:g}</text>')
    for y in steps(high):
        px, py = at(0, y)
        out.append(f'<path d="M{px:.1f} {py:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                   f'<text x="{px - 6:.0f}" y="{py + 4:.0f}" text-anchor="end">{y:g}</text>')
    out.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT - 10}" text-anchor="middle">'
               'blocks written to flash</text>')
    out.append(f'<text transform="translate(16 {HEIGHT / 2:.0f}) rotate(-90)" '
               'text-anchor="middle">% of accesses served from flash</text>')
    for i, (policy, points) in enumerate(sorted(found.items())):
        colour = COLOURS.get(policy, "black")
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (at(*p) for p in points))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" '
                   'stroke-width="1.5"/>')
        out.extend(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>'
                   for x, y in (at(*p) for p in points))
        out.append(f'<text x="{WIDTH - RIGHT + 14}" y="{ABOVE + 16 + 18 * i}" '
                   f'fill="{colour}">{html.escape(policy)}</text>')
    return "\n".join([*out, "</svg>"])


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0],
                            epilog="The JSON is read from standard input.").parse_args()
    results = json.load(sys.stdin)
    if not results:
        sys.exit("plot.py: no results on standard input")
    first = results[0]
    print(draw(curves(results), f"{first['load']}, seed {first['seed']}, "
               f"DRAM {first['dram_blocks']} blocks"))


if __name__ == "__main__":
    main()
