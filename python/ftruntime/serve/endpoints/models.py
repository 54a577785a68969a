"""GET /v1/models: what is served.

SPDX-License-Identifier: Apache-2.0
"""
from starlette.responses import JSONResponse


def _described(served):
    """A model as OpenAI lists it, with what it serves and the tokens of a sequence."""
    return {"id": served.name, "object": "model", "created": served.created,
            "owned_by": "ftruntime", "tasks": served.tasks, "max_model_len": served.context}


async def list_all(request):
    models = request.app.state.service.models
    return JSONResponse({"object": "list", "data": [_described(served) for served in models]})


async def retrieve(request):
    served = request.app.state.service.models.get(request.path_params["name"])
    return JSONResponse(_described(served))
