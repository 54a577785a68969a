"""GET /: the chat page, files that contain no data of a request.

SPDX-License-Identifier: Apache-2.0
"""
import os

from starlette.responses import FileResponse
from starlette.routing import Route

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir, "page")

# Path, file and type.
FILES = {
    "/": ("index.html", "text/html"),
    "/api.js": ("api.js", "text/javascript"),
    "/chat.css": ("chat.css", "text/css"),
    "/chat.js": ("chat.js", "text/javascript"),
    "/conversation.js": ("conversation.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}


def route(path):
    """The route of one file."""
    name, kind = FILES[path]

    async def file(request):
        return FileResponse(os.path.join(FOLDER, name), media_type=kind,
                            headers={"Cache-Control": "no-cache"})

    return Route(path, file)
