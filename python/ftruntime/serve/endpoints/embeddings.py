"""POST /v1/embeddings: texts, or token ids, as vectors.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import base64

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from ..._rows import Row
from ..fields import invalid
from ..texts import read_texts


async def create(service, fields):
    settings = service.settings
    served = service.models.get(fields.text("model"))
    inputs = read_texts(fields, "input", settings)
    dimensions = fields.integer("dimensions", 1, 1 << 20, None)
    encode = ENCODINGS[fields.choice("encoding_format", tuple(ENCODINGS), "float")]
    prompt_name = fields.text("prompt_name")
    truncate = fields.boolean("truncate")
    fields.ignore("user")
    fields.finish()
    served.require("embeddings")
    rows = await run_in_threadpool(_rows_of, served.model, inputs, prompt_name, truncate)
    found = await served.forward(settings.request_timeout, served.engine.embed_rows, rows,
                                 dimensions)
    tokens = sum(row.count for row in rows)
    return await run_in_threadpool(_answer, served.name, found, encode, tokens)


def _answer(name, found, encode, tokens):
    return JSONResponse({
        "object": "list",
        "model": name,
        "data": [{"object": "embedding", "index": i, "embedding": encode(vector)}
                 for i, vector in enumerate(found)],
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
    })


def _rows_of(model, inputs, prompt_name, truncate):
    """Token ids are taken as they are, without a prompt."""
    texts = [value for value in inputs if isinstance(value, str)]
    encoded = iter(model._embedding_rows(texts, prompt_name, truncate, 0))
    rows = [next(encoded) if isinstance(value, str) else Row(value) for value in inputs]
    for i, row in enumerate(rows):
        if row.count == 0:
            raise invalid(f"input[{i}]", "a text without a token", "one with a token")
    return rows


ENCODINGS = {
    "float": lambda vector: vector.tolist(),
    "base64": lambda vector: base64.b64encode(vector.astype("<f4").tobytes()).decode(),
}
