#!/usr/bin/env python3
"""scaling.py - how the speed of a processor scales with threads, rows, context and batch.

    docs/scaling/scaling.py measure --bin BUILD --name zen5 >zen5.json
    docs/scaling/scaling.py draw zen5.json >zen5.svg
    docs/scaling/scaling.py measure-gpu --bin BUILD --name H200 >h200.json
    docs/scaling/scaling.py draw h200.json >h200.svg

`measure` times forward passes with ft-bench: BERT-base in float and int8, and decode steps of Llama 3.2
1B's matrices with group-wise weights.  Each figure is the least time of --runs runs in each of --rounds
rounds, because other load only adds time.

`measure-gpu` times passes of BERT-base and Llama 3 8B over rows, and decode steps over context, with an
INT8 KV cache, and over the batch.  Beside each median stands the time at the roofline that ft-bench has
measured in the same run.  A ring marks where a curve leaves it: the points next to the best one whose
share of the roofline is below 0.8 of its share.

`draw` makes one SVG with a plot for each question; a browser shows it in light and dark.

Needs Python alone.

SPDX-License-Identifier: Apache-2.0
"""
import argparse
import json
import math
import os
import subprocess
import sys
from xml.sax.saxutils import escape

# ---- Measurements --------------------------------------------------------------------------------


def bench(args, shape, scheme, threads, options):
    command = [os.path.join(args.bin, "ft-bench"), "--shape", shape, "--scheme", scheme, "-q", "--json",
               "--roofline", "1,1,1,1",  # not measured: the plots show none
               "-t", str(threads), "-r", str(args.runs), *map(str, options)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


def joined(numbers):
    return ",".join(map(str, numbers))


def encoder(args, scheme, threads, batch, length):
    """Tokens per second of BERT-base, one per pair of batch and length."""
    found = bench(args, "bert-base", scheme, threads, ["-b", joined(batch), "-l", joined(length)])
    return [1e3 * case["tokens"] / case["min_ms"] for case in found["cases"]]


def decoder(args, scheme, threads, batch, context):
    """Tokens per second of decode steps."""
    found = bench(args, "llama-1b", scheme, threads, ["-b", joined(batch), "--decode", joined(context)])
    return [1e3 * case["sequences"] / case["min_ms"] for case in found["cases"]]


def thread_counts(most):
    counts = [1 << i for i in range(most.bit_length()) if 1 << i <= most]
    return counts if counts[-1] == most else counts + [most]


def over_threads(args, function, scheme, batch, size):
    counts = thread_counts(args.threads)
    return counts, [function(args, scheme, t, [batch], [size])[0] for t in counts]


def measure(args):
    rows, contexts = [8, 16, 32, 64, 128, 256, 512], [128, 512, 1024, 2048, 4096]
    batches, few = [1, 2, 4, 8, 16, 32], [1, 2, 4, 8, 16]
    encoders, decoders = ["int8", "float"], ["w4a16", "w8a16", "w8a8-block"]

    def plot(title, x, y, series):
        return {"title": title, "x": x, "y": y, "series": series}

    def series(schemes, run):
        best = {}
        for _ in range(args.rounds):
            for scheme in schemes:
                x, y = run(scheme)
                best[scheme] = x, [max(pair) for pair in zip(y, best.get(scheme, (x, y))[1])]
        return [{"label": scheme, "x": x, "y": y} for scheme, (x, y) in best.items()]

    plots = [
        plot("Threads: BERT-base, 8 x 128 tokens", "threads", "tokens/s",
             series(encoders, lambda s: over_threads(args, encoder, s, 8, 128))),
        plot("Threads: Llama 1B, decode", "threads", "tokens/s",
             series(decoders, lambda s: over_threads(args, decoder, s, 1, 128))),
        plot("Rows: BERT-base, one sequence", "tokens", "tokens/s",
             series(encoders, lambda s: (rows, encoder(args, s, args.threads, [1], rows)))),
        plot("Batch: BERT-base, sequences of 128", "sequences", "tokens/s",
             series(encoders, lambda s: (batches, encoder(args, s, args.threads, batches, [128])))),
        plot("Context: Llama 1B, decode", "tokens in the KV cache", "tokens/s",
             series(decoders, lambda s: (contexts, decoder(args, s, args.threads, [1], contexts)))),
        plot("Batch: Llama 1B, decode", "sequences", "tokens/s",
             series(decoders, lambda s: (few, decoder(args, s, args.threads, few, [128])))),
    ]
    isa = bench(args, "minilm", "int8", 1, ["-b", 1, "-l", 8])["device"]["detail"]
    json.dump({"name": args.name, "isa": isa, "threads": args.threads, "runs": args.runs,
               "plots": plots}, sys.stdout, indent=1)
    print()


# ---- Measurements on a GPU -----------------------------------------------------------------------


def gpu_bench(args, shape, options):
    """The cases of one call, with the roofline of the first one."""
    command = [os.path.join(args.bin, "ft-bench"), "--shape", shape, "--device", args.device, "-q",
               "--json", "-r", str(args.runs), *map(str, options)]
    if args.roofline:
        command += ["--roofline", args.roofline]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    args.detail = found["device"]["detail"]
    if not args.roofline:
        rates = found["roofline"]
        args.roofline = ",".join(str(rates.get(name, 1)) for name in (
            "int8_tops", "float_tflops", "copy_gb_per_s", "read_gb_per_s"))
    return found["cases"]


def gpu_series(label, x, cases):
    found = {x(case): (case["median_ms"], case["roofline_ms"]) for case in cases}
    at = sorted(found)
    return {"label": label, "x": at, "y": [found[i][0] for i in at], "roof": [found[i][1] for i in at]}


def powers(first, last):
    return [1 << i for i in range(first, last + 1)]


def rows_of(args, shape, scheme, most):
    """Passes with 1 to `most` tokens: a sequence of up to 64, then sequences of 128."""
    few = gpu_bench(args, shape, ["--scheme", scheme, "-b", 1, "-l", joined(powers(0, 6))])
    batches = powers(0, most.bit_length() - 8)
    many = gpu_bench(args, shape, ["--scheme", scheme, "-b", joined(batches), "-l", 128])
    return gpu_series(f"{shape} {scheme}", lambda case: case["tokens"], few + many)


def decode_of(args, shape, x, batch, context):
    cases = gpu_bench(args, shape, ["--scheme", "int8", "--kv", "int8", "-b", joined(batch),
                                    "--decode", joined(context)])
    return gpu_series(shape, lambda case: case[x], cases)


def measure_gpu(args):
    big, small = "llama-3-8b", "llama-1b"
    measured = {
        "rows": lambda: {"title": "Rows: one pass", "x": "tokens", "series": [
            rows_of(args, big, "int8", 16384), rows_of(args, "bert-base", "int8", 65536),
            rows_of(args, "bert-base", "f16", 65536)]},
        "context": lambda: {"title": "Context: decode, INT8 cache", "x": "tokens in the cache", "series": [
            decode_of(args, big, "context", [1], powers(7, 15)),
            decode_of(args, small, "context", [1], powers(7, 17))]},
        "batch": lambda: {"title": "Batch: decode, context 128", "x": "sequences", "series": [
            decode_of(args, big, "sequences", powers(0, 10), [128]),
            decode_of(args, small, "sequences", powers(0, 10), [128])]},
    }
    plots = [{**measured[name](), "y": "ms"} for name in args.plots.split(",")]
    json.dump({"name": args.name, "isa": args.detail, "runs": args.runs, "roofline": args.roofline,
               "plots": plots}, sys.stdout, indent=1)
    print()


# ---- Drawing -------------------------------------------------------------------------------------

WIDTH, HEIGHT = 380, 250                        # of a plot
LEFT, RIGHT, TOP, BOTTOM = 62, 94, 34, 44       # its margins
COLUMNS = 2
STYLE = """
  svg { font: 12px system-ui, sans-serif; background: #fff; color: #222 }
  text { fill: currentColor }
  .title { font-weight: 600 }
  .grid { stroke: currentColor; stroke-opacity: .15 }
  .line { fill: none; stroke-width: 2 }
  .s0 { stroke: #0b62b8; fill: #0b62b8 } .s1 { stroke: #b8500b; fill: #b8500b }
  .s2 { stroke: #1f7a3d; fill: #1f7a3d }
  .line.s0, .line.s1, .line.s2, .ring { fill: none }
  .roof { stroke-width: 1; stroke-dasharray: 4 3 } .ring { stroke-width: 1.5 }
  @media (prefers-color-scheme: dark) {
    svg { background: #16181c; color: #e4e6ea }
    .s0 { stroke: #6db3f2; fill: #6db3f2 } .s1 { stroke: #f2a36d; fill: #f2a36d }
    .s2 { stroke: #7ed99a; fill: #7ed99a }
  }
"""


def compact(number):
    for unit, suffix in ((1e6, "M"), (1e3, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{suffix}"
    return f"{number:.3g}"


def departures(series):
    """The points next to the best one where the share of the roofline is below 0.8 of its share."""
    share = [roof / y for roof, y in zip(series["roof"], series["y"])]
    best = share.index(max(share))
    left = next((i for i in range(best, -1, -1) if share[i] < 0.8 * share[best]), None)
    right = next((i for i in range(best, len(share)) if share[i] < 0.8 * share[best]), None)
    return [i for i in (left, right) if i is not None]


def nice_step(most):
    """A step of 1, 2 or 5 times a power of ten that divides an axis up to `most` into 3 to 6 parts."""
    power = 10 ** math.floor(math.log10(most))
    return next(power * part for part in (0.2, 0.5, 1, 2) if most / (power * part) <= 6)


class Axes:
    """Positions of numbers in a plot: x logarithmic, y from zero, or logarithmic beside a roofline."""

    def __init__(self, plot, left, top):
        x = [number for series in plot["series"] for number in series["x"]]
        y = [number for series in plot["series"] for number in series["y"] + series.get("roof", [])]
        self.is_log = "roof" in plot["series"][0]
        self.least, self.most = math.log2(min(x)), math.log2(max(x))
        self.x_ticks = sorted(set(x))[::-1][::-(-len(set(x)) // 8)][::-1]
        if self.is_log:
            low, high = math.floor(math.log10(min(y))), math.ceil(math.log10(max(y)))
            self.bottom, self.top, self.y_ticks = low, high, [10.0 ** i for i in range(low, high + 1)]
        else:
            step = nice_step(max(y))
            self.bottom, self.top = 0, step * math.ceil(max(y) / step)
            self.y_ticks = [i * step for i in range(round(self.top / step) + 1)]
        self.left, self.right = left + LEFT, left + WIDTH - RIGHT
        self.upper, self.lower = top + TOP, top + HEIGHT - BOTTOM

    def x(self, number):
        part = (math.log2(number) - self.least) / ((self.most - self.least) or 1)
        return self.left + part * (self.right - self.left)

    def y(self, number):
        place = math.log10(number) if self.is_log else number
        return self.lower - (place - self.bottom) / (self.top - self.bottom) * (self.lower - self.upper)


def text(x, y, string, anchor="middle", kind=""):
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
            f'{f" class={chr(34)}{kind}{chr(34)}" if kind else ""}>{escape(string)}</text>')


def draw_grid(plot, axes):
    for tick in axes.y_ticks:
        y = axes.y(tick)
        yield f'<line class="grid" x1="{axes.left}" x2="{axes.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
        yield text(axes.left - 6, y + 4, compact(tick) if tick else "0", "end")
    for number in axes.x_ticks:
        yield text(axes.x(number), axes.lower + 16, compact(number) if number >= 1e4 else str(number))
    yield text((axes.left + axes.right) / 2, axes.lower + 34, plot["x"])


def spread(places, gap=14):
    """The places of labels, moved down where they would overlap."""
    moved, last = {}, -math.inf
    for index in sorted(range(len(places)), key=lambda i: places[i]):
        moved[index] = last = max(places[index], last + gap)
    return moved


def draw_series(plot, axes):
    labels = spread([axes.y(series["y"][-1]) for series in plot["series"]])
    for i, series in enumerate(plot["series"]):
        points = [(axes.x(x), axes.y(y)) for x, y in zip(series["x"], series["y"])]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        yield f'<polyline class="line s{i}" points="{path}"/>'
        for (x, y), number in zip(points, series["y"]):
            found = compact(number) if axes.is_log else f"{number:.0f}"
            yield (f'<circle class="s{i}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
                   f'<title>{escape(series["label"])}: {found} {plot["y"]}</title></circle>')
        if axes.is_log:
            path = " ".join(f"{axes.x(x):.1f},{axes.y(y):.1f}" for x, y in zip(series["x"], series["roof"]))
            yield f'<polyline class="line roof s{i}" points="{path}"/>'
            for at in departures(series):
                x, y = points[at]
                yield f'<circle class="ring s{i}" cx="{x:.1f}" cy="{y:.1f}" r="6" fill="none"/>'
        yield f'<circle class="s{i}" cx="{axes.right + 12}" cy="{labels[i]:.1f}" r="3"/>'
        yield text(axes.right + 20, labels[i] + 4, series["label"], "start")


def draw_plot(plot, index):
    left, top = index % COLUMNS * WIDTH, 30 + index // COLUMNS * HEIGHT
    axes = Axes(plot, left, top)
    yield text(left + LEFT, top + 16, f'{plot["title"]} ({plot["y"]})', "start", "title")
    yield from draw_grid(plot, axes)
    yield from draw_series(plot, axes)


def draw(args):
    files = []
    for path in args.file:
        with open(path, encoding="utf-8") as file:
            files.append(json.load(file))
    data, plots = files[0], [plot for one in files for plot in one["plots"]]
    height = 30 + -(-len(plots) // COLUMNS) * HEIGHT
    title = f'{data["name"]}: {data["isa"]}'
    title += f', up to {data["threads"]} threads' if "threads" in data else ", dashed: its roofline"
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{COLUMNS * WIDTH}" height="{height}" '
          f'viewBox="0 0 {COLUMNS * WIDTH} {height}" role="img" aria-label="{escape(title)}">')
    print(f"<style>{STYLE}</style>")
    print(text(LEFT, 20, title, "start", "title"))
    for index, plot in enumerate(plots):
        print("\n".join(draw_plot(plot, index)))
    print("</svg>")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    commands = parser.add_subparsers(required=True)
    command = commands.add_parser("measure", help="time with ft-bench and print JSON")
    command.add_argument("--bin", required=True, help="folder of ft-bench")
    command.add_argument("--name", required=True, help="of the processor, for the title")
    command.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    command.add_argument("--rounds", type=int, default=1)
    command.add_argument("--runs", type=int, default=20)
    command.set_defaults(run=measure)
    command = commands.add_parser("measure-gpu", help="time with ft-bench on a GPU and print JSON")
    command.add_argument("--bin", required=True, help="folder of ft-bench")
    command.add_argument("--name", required=True, help="of the device, for the title")
    command.add_argument("--device", default="cuda")
    command.add_argument("--runs", type=int, default=10)
    command.add_argument("--plots", default="rows,context,batch")
    command.add_argument("--roofline", help="rates of an earlier call, as ft-bench takes them")
    command.set_defaults(run=measure_gpu)
    command = commands.add_parser("draw", help="print an SVG of the JSON")
    command.add_argument("file", nargs="+", help="several: the plots of all of them")
    command.set_defaults(run=draw)
    args = parser.parse_args()
    args.run(args)


if __name__ == "__main__":
    main()
