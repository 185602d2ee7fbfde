#!/usr/bin/python3
# SPDX-License-Identifier: MIT
"""Charts from the JSON of hawk-sim --replay, as SVG, or as PNG where rsvg-convert is installed.

	hawk-sim --replay agents --budget 10,20,40,60,80,100 --json | plot.py hits >hits.svg
	hawk-sim --replay agents --json | plot.py ttft -o ttft.png

hits	blocks served from flash against blocks written, a curve for each policy
ttft	time to the first token for each policy: mean, median, 99th percentile
cdf	the same as a distribution: share of requests that waited no longer
turns	where the blocks of the prompts were found, by turn and policy
"""

import argparse
import html
import json
import math
import pathlib
import shutil
import subprocess
import sys

WIDTH, HEIGHT, LEFT, BELOW, ABOVE, RIGHT = 720, 420, 70, 50, 30, 130
COLOURS = {"ours": "#c0392b", "all": "#7f8c8d", "second": "#2980b9", "random": "#8e44ad",
           "formula": "#d68910", "oracle": "#1e8449", "dram": "#2c3e50",
           "mean": "#2980b9", "median": "#7f8c8d", "p99": "#c0392b",
           "memory": "#2c3e50", "flash": "#2980b9", "cold": "#b4babc"}
TURNS = ("1", "2", "3-15", "16-")


def label(result):
    return result["policy"] + (", paced" if result["paced"] else "")


def colour(name):
    return COLOURS.get(name.split(",")[0], "black")


def steps(top):
    """About five round numbers up to the top of an axis."""
    size = 10 ** math.floor(math.log10(top))
    while top / size > 6:
        size *= 2
    while top / size < 3:
        size /= 2
    return [i * size for i in range(int(top / size) + 1)]


class Chart:
    """A frame with axes; x and y are places on them."""

    def __init__(self, title, right, high, least=0, log=False):
        self.right, self.high, self.least, self.log = right, high, least, log
        self.out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
                    'font-family="sans-serif" font-size="12">',
                    f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>']
        self.text(LEFT, 18, title)
        for y in steps(high):
            py = self.y(y)
            self.out.append(f'<path d="M{LEFT} {py:.1f}H{WIDTH - RIGHT}" stroke="#ddd"/>')
            self.text(LEFT - 8, py + 4, f"{y:g}", "end")

    def x(self, x):
        if self.log:
            x, least, right = (math.log10(v) for v in (max(x, self.least), self.least, self.right))
        else:
            least, right = self.least, self.right
        return LEFT + (x - least) / (right - least) * (WIDTH - LEFT - RIGHT)

    def y(self, y):
        return HEIGHT - BELOW - y / self.high * (HEIGHT - BELOW - ABOVE)

    def text(self, x, y, words, anchor="start", fill="black", size=12):
        self.out.append(f'<text x="{x:.0f}" y="{y:.0f}" text-anchor="{anchor}" fill="{fill}" '
                        f'font-size="{size}">'
                        f'{html.escape(words)}</text>')

    def names(self, x_name, y_name, ticks=()):
        for x in ticks:
            self.text(self.x(x), HEIGHT - BELOW + 18, f"{x:g}", "middle")
        self.text(WIDTH / 2, HEIGHT - 10, x_name, "middle")
        self.out.append(f'<text transform="translate(16 {HEIGHT / 2:.0f}) rotate(-90)" '
                        f'text-anchor="middle">{html.escape(y_name)}</text>')

    def curve(self, nr, name, points, dots):
        path = " ".join(f"{self.x(x):.1f},{self.y(y):.1f}" for x, y in points)
        dash = ' stroke-dasharray="5 3"' if "paced" in name else ""
        self.out.append(f'<polyline points="{path}" fill="none" stroke="{colour(name)}" '
                        f'stroke-width="1.5"{dash}/>')
        if dots:
            self.out.extend(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="3" '
                            f'fill="{colour(name)}"/>' for x, y in points)
        self.key(nr, name)

    def bar(self, left, width, low, high, name):
        self.out.append(f'<rect x="{self.x(left):.1f}" width="{self.x(left + width) - self.x(left):.1f}" '
                        f'y="{self.y(high):.1f}" height="{self.y(low) - self.y(high):.1f}" '
                        f'fill="{colour(name)}"/>')

    def key(self, nr, name):
        self.text(WIDTH - RIGHT + 14, ABOVE + 16 + 18 * nr, name, fill=colour(name))

    def svg(self):
        return "\n".join([*self.out, "</svg>\n"])


def hits(results, title):
    found = {}
    for r in results:
        found.setdefault(label(r), []).append((r["writes"], 100 * r["flash_hits"] / r["accesses"]))
    most = max(x for points in found.values() for x, _ in points) or 1
    chart = Chart(title, most, 1.1 * max(y for points in found.values() for _, y in points) or 1)
    for i, (name, points) in enumerate(sorted(found.items())):
        chart.curve(i, name, sorted(points), True)
    chart.names("blocks written to flash", "% of accesses served from flash", steps(most))
    return chart.svg()


def ttft(results, title):
    kinds = (("mean", "ttft_mean_s"), ("median", "ttft_p50_s"), ("p99", "ttft_p99_s"))
    chart = Chart(title, len(results), 1.1 * max(r["ttft_p99_s"] for r in results))
    for i, r in enumerate(results):
        for k, (kind, key) in enumerate(kinds):
            chart.bar(i + 0.1 + 0.27 * k, 0.25, 0, r[key], kind)
            chart.text(chart.x(i + 0.22 + 0.27 * k), chart.y(r[key]) - 4, f"{r[key]:.2f}", "middle",
                       size=9)
        chart.text(chart.x(i + 0.5), HEIGHT - BELOW + 18, label(r), "middle")
    for k, (kind, _) in enumerate(kinds):
        chart.key(k, kind)
    chart.names("policy", "time to the first token, s")
    return chart.svg()


def cdf(results, title):
    least = min(max(r["ttft_percentiles_s"][0], 1e-3) for r in results)
    most = max(r["ttft_percentiles_s"][-1] for r in results)
    chart = Chart(title, most, 100, least, log=True)
    for i, r in enumerate(results):
        chart.curve(i, label(r), [(s, p) for p, s in enumerate(r["ttft_percentiles_s"])], False)
    ticks = [m * 10.0 ** e for e in range(-3, 6) for m in (1, 2, 5) if least <= m * 10.0 ** e <= most]
    chart.names("time to the first token, s", "% of requests that waited no longer", ticks)
    return chart.svg()


def turns(results, title):
    chart = Chart(title, len(results), 100)
    for i, r in enumerate(results):
        for k, row in enumerate(r["turns"]):
            blocks, low = row["blocks"] or 1, 0
            for name, n in (("memory", row["dram"]), ("flash", row["flash"]),
                            ("cold", row["blocks"] - row["dram"] - row["flash"])):
                chart.bar(i + 0.06 + 0.23 * k, 0.2, low, low + 100 * n / blocks, name)
                low += 100 * n / blocks
            chart.text(chart.x(i + 0.16 + 0.23 * k), HEIGHT - BELOW + 12, TURNS[k], "middle",
                       size=8)
        chart.text(chart.x(i + 0.5), HEIGHT - BELOW + 26, label(r), "middle")
    for k, name in enumerate(("memory", "flash", "cold")):
        chart.key(k, name)
    chart.names("turn and policy", "% of blocks")
    return chart.svg()


CHARTS = {"hits": hits, "ttft": ttft, "cdf": cdf, "turns": turns}


def png(svg, path):
    if not shutil.which("rsvg-convert"):
        sys.exit("plot.py: for PNG install rsvg-convert (package librsvg2-bin), or ask for .svg")
    subprocess.run(["rsvg-convert", "-o", path], input=svg.encode(), check=True)


def main():
    p = argparse.ArgumentParser(description=__doc__, epilog="The JSON is read from standard input.",
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("chart", choices=CHARTS)
    p.add_argument("-o", "--output", type=pathlib.Path, help=".svg or .png (default: SVG to standard output)")
    args = p.parse_args()
    results = json.load(sys.stdin)
    if not results:
        sys.exit("plot.py: no results on standard input")
    if args.chart in ("ttft", "cdf") and not all(r["ttft_percentiles_s"] for r in results):
        sys.exit("plot.py: no times: run hawk-sim without --no-ttft")
    first = results[0]
    svg = CHARTS[args.chart](results, f"{first['load']}, seed {first['seed']}, "
                             f"DRAM {first['dram_blocks']} blocks")
    if not args.output:
        print(svg, end="")
    elif args.output.suffix == ".png":
        png(svg, args.output)
    else:
        args.output.write_text(svg)


if __name__ == "__main__":
    main()
