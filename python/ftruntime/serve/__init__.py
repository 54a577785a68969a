"""An HTTP server with the API of OpenAI, on Starlette and uvicorn.

    python -m ftruntime.serve MODEL.ft

create_app() makes its ASGI application, which other servers can run.

SPDX-License-Identifier: Apache-2.0
"""
from .settings import Settings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .app import create_app

__all__ = ["Settings", "create_app"]


def __getattr__(name):
    """create_app() needs Starlette, whose absence the command line explains."""
    if name == "create_app":
        from .app import create_app

        return create_app
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
