"""The ASGI application.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Mapping, Optional

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route

from .._library import FtError
from .body import read_json
from .disconnect import unless_disconnected
from .endpoints import chat, completions, embeddings, health, models, page, rerank
from .errors import ApiError, api_error
from .fields import Fields
from .guard import CLIENT_HAS_GONE, Guard
from .metrics import Metrics
from .served import Models
from .settings import Settings

if TYPE_CHECKING:
    from ..model import Model


class Service:
    """What all requests share."""

    def __init__(self, served, settings):
        self.models = served
        self.settings = settings
        self.metrics = Metrics()
        self.draining = False

    def require_open(self):
        if self.draining:
            raise ApiError(503, "the server is being shut down", code="draining",
                           headers={"Retry-After": "5", "Connection": "close"})


def _post(path, create):
    """A route for an object in JSON, whose answer ends with its client."""

    async def endpoint(request):
        service, answer = request.app.state.service, None
        try:
            fields = Fields(await read_json(request, service.settings))
            answer = await unless_disconnected(request.receive, create(service, fields))
        except ClientDisconnect:
            pass
        return Response(status_code=CLIENT_HAS_GONE) if answer is None else answer

    return Route(path, endpoint, methods=["POST"])


ROUTES = [
    _post("/v1/chat/completions", chat.create),
    _post("/v1/completions", completions.create),
    _post("/v1/embeddings", embeddings.create),
    _post("/v1/rerank", rerank.create),
    Route("/v1/models", models.list_all),
    Route("/v1/models/{name:path}", models.retrieve),
    Route("/health", health.health),
    Route("/metrics", health.metrics),
    *(Route(path, page.page) for path in ("/", "/chat.js", "/chat.css")),
]


PATHS = frozenset(route.path for route in ROUTES)


async def _not_served(request, failure):
    """A path or a method that no route has."""
    what = {404: "no such endpoint", 405: "no such method of this endpoint"}
    message = what.get(failure.status_code, "the request is not valid")
    return ApiError(failure.status_code, message, code="not_found",
                    headers=failure.headers).response()


async def _failed(request, failure):
    return api_error(failure, request.app.state.service.models).response()


def create_app(served: "Mapping[str, Model]", settings: Optional[Settings] = None) -> Starlette:
    """An ASGI application that serves models under their names.

    Each model gets an engine, which the end of the application's lifespan closes.

    Args:
        served: Models by name; each stays open as long as the application.
        settings: limits and rights.

    Raises:
        FtError: FT_ENOMEM, FT_ELIMIT.
        ValueError: for a model that answers no request.
    """
    settings = settings or Settings()
    service = Service(Models(served, settings), settings)

    @asynccontextmanager
    async def lifespan(app):
        yield
        service.draining = True
        await run_in_threadpool(service.models.close)

    app = Starlette(routes=ROUTES, lifespan=lifespan,
                    middleware=[Middleware(Guard, service=service, paths=PATHS)],
                    exception_handlers={ApiError: _failed, FtError: _failed,
                                        HTTPException: _not_served})
    app.state.service = service
    return app
