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


class Word(namedtuple("Word", "text id score")):
    """A word that a mask may stand for."""

    __slots__ = ()

    text: str  # of the token, without a space before it
    id: int
    score: float  # its probability


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
    """The entities of a text; logits [S, C]."""
    found = ffi.new("ft_tagged_entities *")
    if not lib.ft_tagged_entities_find(found, model._model, row, floats(logits), by_word):
        raise MemoryError
    data = _texts(text)
    try:
        return [_entity(found.entity[i], data[row.sequence[found.entity[i].first]])
                for i in range(found.count)]
    finally:
        lib.ft_tagged_entities_fini(found)


def _texts(text):
    """The text, or both texts of a pair."""
    return [part.encode() for part in ([text] if isinstance(text, str) else text)]


def _entity(entity, data):
    return Entity(ffi.string(entity.label).decode(), entity.score,
                  *_place(data, entity.start, entity.stop))


def _place(data, start, end):
    """Bytes [start, end) of a text as characters, and what they are."""
    return (_characters(data, start), _characters(data, end),
            data[start:end].decode("utf-8", "replace"))


def _characters(data, offset):
    return sum(byte & 0xC0 != 0x80 for byte in data[:offset])


# ---- Answers ----------------------------------------------------------------------------------


def answer(context, windows):
    """The best answer in the windows of a context: (row, start logits [S], end logits [S]) each."""
    best = ffi.new("ft_answer *")
    lib.ft_answer_init(best)
    for row, start, end in windows:
        lib.ft_answer_add_window(best, row, floats(start), floats(end))
    if lib.ft_answer_is_none(best):
        return Answer(None, best.null_score, None, None)
    start, end, text = _place(context.encode(), best.start, best.end)
    return Answer(text, best.score, start, end)


# ---- Masked words -----------------------------------------------------------------------------


def words(tokenizer, row, logits, count):
    """The `count` most probable words for each mask of a text; logits [S, V]."""
    mask = lib.ft_mask_token_id(tokenizer._tokenizer)
    return [_top_words(tokenizer, logits[i], count) for i in range(row.count)
            if row.ids[i] == mask]


def _top_words(tokenizer, logits, count):
    top = ffi.new("ft_top_token[]", lib.FT_TOP_TOKENS_MAX)
    found = lib.ft_top_tokens_find(top, count, floats(logits), len(logits))
    return [Word(_word(tokenizer, token.id), token.id, token.probability) for token in top[0:found]]


def _word(tokenizer, id):
    text = tokenizer.decode([id], skip_special_tokens=False)
    return text[1:] if text.startswith(" ") else text


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
