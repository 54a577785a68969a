"""Counters and histograms, in the text format of Prometheus.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from collections import defaultdict

from .._library import FtError

SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

# Members of EngineStats: their kind and what they are.
ENGINE = {
    "queued": ("gauge", "Choices and batches that wait in the engine."),
    "running": ("gauge", "Choices and batches that the engine computes."),
    "finished": ("counter", "Choices and batches that are complete."),
    "cancelled": ("counter", "Choices and batches that were cancelled."),
    "timed_out": ("counter", "Choices and batches that did not end in time."),
    "failed": ("counter", "Choices and batches that failed."),
    "prompt_tokens": ("counter", "Tokens computed of prompts and inputs."),
    "decode_tokens": ("counter", "Tokens computed by decode steps."),
    "prefix_tokens": ("counter", "Tokens of prompts found in the prefix cache."),
    "passes": ("counter", "Forward passes."),
    "free_pages": ("gauge", "Free pages of the KV cache, of 64 tokens each."),
    "pages": ("gauge", "Pages of the KV cache, of 64 tokens each."),
}


class Histogram:
    """How many observations are at most so large."""

    def __init__(self):
        self._counts = [0] * (len(SECONDS) + 1)
        self._sum = 0.0

    def observe(self, seconds):
        place = sum(seconds > bound for bound in SECONDS)
        self._counts[place] += 1
        self._sum += seconds

    def lines(self, name, labels):
        total = 0
        for bound, count in zip([*SECONDS, "+Inf"], self._counts):
            total += count
            yield f"{name}_bucket{{{labels},le=\"{bound}\"}} {total}"
        yield f"{name}_sum{{{labels}}} {self._sum:.6f}"
        yield f"{name}_count{{{labels}}} {total}"


class Metrics:
    """What a server has done.  It belongs to one event loop."""

    def __init__(self):
        self.in_progress = 0
        self._requests = defaultdict(int)
        self._seconds = defaultdict(Histogram)
        self._first_token = defaultdict(Histogram)

    def end_request(self, endpoint, status, seconds):
        self._requests[endpoint, status] += 1
        self._seconds[endpoint].observe(seconds)

    def first_token(self, model):
        """The histogram of a model."""
        return self._first_token[model]

    def text(self, models):
        """All metrics, with those of the engines."""
        return "\n".join([*self._request_lines(), *_engine_lines(models)]) + "\n"

    def _request_lines(self):
        yield from _head("ftruntime_requests_total", "counter", "Requests by status.")
        for (endpoint, status), count in sorted(self._requests.items()):
            yield (f'ftruntime_requests_total{{endpoint="{endpoint}",status="{status}"}} {count}')
        yield from _head("ftruntime_requests_in_progress", "gauge", "Requests that run.")
        yield f"ftruntime_requests_in_progress {self.in_progress}"
        yield from _histograms("ftruntime_request_seconds", "Time of requests.", "endpoint",
                               self._seconds)
        yield from _histograms("ftruntime_first_token_seconds",
                               "Time from submission to the first token of a stream.", "model",
                               self._first_token)


def _head(name, kind, what):
    return f"# HELP {name} {what}", f"# TYPE {name} {kind}"


def _histograms(name, what, label, histograms):
    yield from _head(name, "histogram", what)
    for value, histogram in sorted(histograms.items()):
        yield from histogram.lines(name, f'{label}="{_escaped(value)}"')


def _engine_lines(models):
    stats = {served.name: _stats(served) for served in models}
    for member, (kind, what) in ENGINE.items():
        name = f"ftruntime_engine_{member}" + ("_total" if kind == "counter" else "")
        yield from _head(name, kind, what)
        for model, found in stats.items():
            if found is not None:
                yield f'{name}{{model="{_escaped(model)}"}} {getattr(found, member)}'


def _stats(served):
    try:
        return served.engine.stats()
    except FtError:  # it is closed
        return None


def _escaped(text):
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
