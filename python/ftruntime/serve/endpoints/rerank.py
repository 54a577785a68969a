"""POST /v1/rerank: documents by their score for a query, in the shape of Jina, Cohere and vLLM.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from starlette.concurrency import run_in_threadpool
from starlette.responses import JSONResponse

from ..fields import checked_list, checked_text
from ..stamp import new_id


async def create(service, fields):
    settings = service.settings
    served = service.models.get(fields.text("model"))
    query = checked_text(fields.require("query", "a text"), "query")
    documents = _read_documents(fields, settings)
    top_n = fields.integer("top_n", 1, 1 << 30, len(documents))
    return_documents = fields.boolean("return_documents", True)
    truncate = fields.boolean("truncate")
    fields.ignore("user")
    fields.finish()
    served.require("rerank")
    pairs = [(query, document) for document in documents]
    rows = await run_in_threadpool(served.model._class_rows, pairs, truncate, 0)
    found = await served.forward(settings.request_timeout, served.engine.classify_rows, rows)
    scores = [prediction.probabilities[-1] for prediction in found]
    best = sorted(range(len(scores)), key=lambda i: -scores[i])[:top_n]
    tokens = sum(row.count for row in rows)
    return JSONResponse({
        "id": new_id("rerank"),
        "model": served.name,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "results": [_result(i, scores[i], documents[i] if return_documents else None)
                    for i in best],
    })


def _read_documents(fields, settings):
    """Texts, or objects with a text."""
    values = checked_list(fields.require("documents", "an array of texts"), "documents",
                          settings.max_inputs, "documents")
    texts = []
    for i, value in enumerate(values):
        path = f"documents[{i}]"
        if isinstance(value, dict):
            document = fields.of(value, path)
            value, path = document.require("text", "a text"), f"{path}.text"
            document.finish()
        texts.append(checked_text(value, path))
    return texts


def _result(index, score, document):
    result = {"index": index, "relevance_score": score}
    if document is not None:
        result["document"] = {"text": document}
    return result
