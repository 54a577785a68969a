"""python -m ftruntime.serve.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

from .._library import FtError
from ..model import Model
from . import log


def _open_models(options):
    threads = options.threads or None
    return {name: Model.open(path, options.device, threads, kv=options.kv, embed=options.embed)
            for name, path in zip(options.names, options.models)}


def _fail(message):
    log.write_line(f"ftruntime.serve: {message}")
    return 1


def main(arguments=None):
    """Serve; returns the exit status."""
    try:
        from . import server
        from .app import create_app
        from .options import parse
    except ImportError as failure:
        return _fail(f"{failure.name} is missing: pip install ftruntime[serve]")
    options, settings = parse(arguments)
    log.set_up(options.log_level)
    try:
        bound = server.bind(options.host, options.port)
    except OSError as failure:
        return _fail(f"{options.host} port {options.port}: {failure.strerror or failure}")
    try:
        app = create_app(_open_models(options), settings)
    except (FtError, ValueError) as failure:
        bound.close()
        return _fail(str(failure))
    message = f"ftruntime.serve: {', '.join(options.names)} at {server.url_of(bound)}"
    server.run(app, settings, bound, lambda: log.write_line(message))
    return 0
