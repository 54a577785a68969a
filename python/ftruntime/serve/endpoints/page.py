"""GET /: the chat page, files that contain no data of a request.

SPDX-License-Identifier: Apache-2.0
"""
import os

from starlette.responses import FileResponse

from ..errors import ApiError

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "page")

TYPES = {
    "index.html": "text/html",
    "chat.js": "text/javascript",
    "chat.css": "text/css",
}


async def page(request):
    name = request.url.path.rpartition("/")[2] or "index.html"
    path = os.path.join(FOLDER, name)
    if not os.path.exists(path):
        raise ApiError(404, "this server has no page", code="not_found")
    return FileResponse(path, media_type=TYPES[name], headers={"Cache-Control": "no-cache"})
