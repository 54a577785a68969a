"""What logits mean: labels, entities and answers, as ft-run reads them.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from collections import namedtuple

from ._arrays import floats
from ._library import call, ffi, lib

TYPE_CHECKING = False  # as in typing, whose import takes longer than the rest
if TYPE_CHECKING:
    from typing import List, Optional

PROBLEMS = {
    "single_label_classification": lib.FT_PROBLEM_SINGLE,
    "multi_label_classification": lib.FT_PROBLEM_MULTI,
    "regression": lib.FT_PROBLEM_REGRESSION,
}

MAX_ANSWER_TOKENS = 40


class Prediction(namedtuple("Prediction", "label index score labels probabilities logits")):
    """The classes of a text.  Of a regression, `label` and `score` are of the largest logit."""

    __slots__ = ()

    label: str  # the most probable label
    index: int
    score: float  # its probability; of a regression the logit
    labels: List[str]  # multi-label: all with a probability above 0.5; else [label]
    probabilities: List[float]  # of each label; of a regression the logits
    logits: List[float]


class Entity(namedtuple("Entity", "label score start end text")):
    """An entity: characters [start, end) of a text."""

    __slots__ = ()

    label: str
    score: float  # mean probability of its tokens' labels
    start: int
    end: int
    text: str


class Answer(namedtuple("Answer", "text score start end")):
    """The answer to a question: characters [start, end) of the context; None: there is none."""

    __slots__ = ()

    text: Optional[str]
    score: float
    start: Optional[int]
    end: Optional[int]


def prediction(model, logits):
    """The prediction of one row [C]."""
    problem, count = PROBLEMS[model.problem_type], len(logits)
    index = int(logits.argmax())
    values = logits.tolist()
    if problem == lib.FT_PROBLEM_REGRESSION:
        probabilities = values
    else:
        pointer = floats(logits)
        probabilities = [lib.ft_class_probability(problem, pointer, count, i)
                         for i in range(count)]
    names = [model.label(i) for i in range(count)]
    chosen = [index]
    if problem == lib.FT_PROBLEM_MULTI:
        chosen = [i for i in range(count) if values[i] > 0]
    return Prediction(names[index], index, probabilities[index], [names[i] for i in chosen],
                      probabilities, values)


# ---- Entities ---------------------------------------------------------------------------------


def entities(model, text, row, logits, by_word):
    """Group the tokens of a text with the same label; logits [S, C]."""
    groups, data, best = [], text.encode(), logits.argmax(axis=1)
    current = None
    for i in range(row.count):
        if row.sequence[i] < 0:
            continue
        if by_word and i > 0 and _same_word(row, i):
            if current is not None:
                current["end"] = row.offsets[i].end
            continue
        name = model.label(int(best[i]))
        probability = lib.ft_class_probability(lib.FT_PROBLEM_SINGLE, floats(logits[i]),
                                               logits.shape[1], int(best[i]))
        current = _add_token(groups, current, name, row.offsets[i], probability)
    return [_entity(group, data) for group in groups]


def _same_word(row, i):
    return row.sequence[i - 1] == row.sequence[i] and row.words[i - 1] == row.words[i]


def _add_token(groups, current, name, place, probability):
    """Extend the current entity or begin one; returns it, or None."""
    if name == "O":
        return None
    begins = name.startswith("B-")
    label = name[2:] if begins or name.startswith("I-") else name
    if current is None or begins or current["label"] != label:
        current = {"label": label, "start": place.start, "sum": 0.0, "tokens": 0}
        groups.append(current)
    current["end"] = place.end
    current["sum"] += probability
    current["tokens"] += 1
    return current


def _entity(group, data):
    start, end = group["start"], group["end"]
    return Entity(group["label"], group["sum"] / group["tokens"], _characters(data, start),
                  _characters(data, end), data[start:end].decode("utf-8", "replace"))


def _characters(data, offset):
    return sum(byte & 0xC0 != 0x80 for byte in data[:offset])


# ---- Answers ----------------------------------------------------------------------------------


def answer(context, row, start, end):
    """The best span of at most MAX_ANSWER_TOKENS tokens; start and end are logits [S]."""
    start, end = start[:row.count].tolist(), end[:row.count].tolist()
    context_tokens = [i for i in range(row.count) if row.sequence[i] == 1]
    competing = sorted({0, *context_tokens})
    total = _log_sum(start, competing) + _log_sum(end, competing)
    none, best = start[0] + end[0], None
    for last in context_tokens:
        first = _best_start(row, start, last)
        logit = start[first] + end[last]
        if best is None or logit > best[0]:
            best = logit, row.offsets[first].start, row.offsets[last].end
    if best is None or none >= best[0]:
        return Answer(None, lib.ft_math_exp(none - total), None, None)
    logit, first, last = best
    data = context.encode()
    return Answer(data[first:last].decode("utf-8", "replace"), lib.ft_math_exp(logit - total),
                  _characters(data, first), _characters(data, last))


def _best_start(row, start, last):
    best = last
    for i in range(last, max(last - MAX_ANSWER_TOKENS, -1), -1):
        if row.sequence[i] != 1:
            break
        if start[i] >= start[best]:
            best = i
    return best


def _log_sum(values, tokens):
    most = max(values[i] for i in tokens)
    total = 0.0  # not sum(), which compensates from Python 3.12 on
    for i in tokens:
        total += lib.ft_math_exp(values[i] - most)
    return most + lib.ft_math_log(total)


# ---- Embeddings -------------------------------------------------------------------------------


def cut(np, embeddings, dim, normalize):
    """The first columns, scaled to unit L2 norm if the model does so; sums in order, as in C."""
    part = embeddings[:, :dim]
    if not normalize:
        return np.ascontiguousarray(part)
    wide = part.astype("float64")
    squares = np.cumsum(wide * wide, axis=1)[:, -1:]
    norms = np.where(squares > 1e-24, np.sqrt(squares), 1e-12)
    return (wide / norms).astype("float32")


def prompt_of(model, name):
    """The prompt of a name, or the default one if it is None; "" if there is none."""
    prompts, found = ffi.new("ft_embedding_prompts *"), ffi.new("const char **")
    try:
        call(lib.ft_embedding_prompts_open_model, prompts, found, model._model,
             ffi.NULL if name is None else name.encode())
        return ffi.string(found[0]).decode()
    finally:
        lib.ft_embedding_prompts_fini(prompts)
