"""GET /health: whether requests are taken.  GET /metrics: counters, in the text of Prometheus.

SPDX-License-Identifier: Apache-2.0
"""
from starlette.responses import JSONResponse, PlainTextResponse


async def health(request):
    draining = request.app.state.service.draining
    return JSONResponse({"status": "draining" if draining else "ok"}, 503 if draining else 200)


async def metrics(request):
    service = request.app.state.service
    return PlainTextResponse(service.metrics.text(service.models),
                             media_type="text/plain; version=0.0.4")
