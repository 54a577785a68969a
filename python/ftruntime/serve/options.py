"""The command line.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import argparse
import os

from .hosts import is_loopback
from .settings import Settings

DEFAULTS = Settings()

DESCRIPTION = """\
Serve models over HTTP with the API of OpenAI: /v1/chat/completions, /v1/completions,
/v1/embeddings, /v1/rerank and /v1/models, with a chat page at /, /health and /metrics.
"""

EPILOG = """\
The server speaks plain HTTP: for other machines, put a proxy with TLS in front of it.  SIGTERM and
SIGINT stop accepting connections, let what runs end, and end the server with status 0.  The log
names requests and never has keys, prompts or answers.

A temperature of 1 is the default of requests, as in OpenAI's API.  Completions have at most 16 new
tokens by default, chats as many as the context has room for.
"""


def _integer(low):
    def read(text):
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if value < low:
            raise argparse.ArgumentTypeError(f"found {text}, expected an integer from {low} on")
        return value

    return read


def _seconds(text):
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 1e6:
        raise argparse.ArgumentTypeError(f"found {text}, expected seconds, more than 0")
    return value


def _port(text):
    value = _integer(0)(text)
    if value > 65535:
        raise argparse.ArgumentTypeError(f"found {text}, expected a port from 0 to 65535")
    return value


def _keys_in(path):
    try:
        with open(path, encoding="utf-8") as file:
            keys = [line.strip() for line in file if line.strip()]
    except (OSError, UnicodeDecodeError) as failure:
        raise argparse.ArgumentTypeError(f"{path}: {failure}") from None
    if not keys:
        raise argparse.ArgumentTypeError(f"{path}: found no key, expected one in each line")
    return keys


def make_parser():
    parser = argparse.ArgumentParser(
        prog="python -m ftruntime.serve", usage="%(prog)s [OPTION]... MODEL.ft...",
        description=DESCRIPTION, epilog=EPILOG,
        allow_abbrev=False, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL.ft", help="artifacts to serve")
    parser.add_argument("--name", action="append", metavar="NAME", default=[],
                        help="name of the first model, of the second, ...; default: that of its "
                        "file without .ft")
    parser.add_argument("--device", default="cpu", help="cpu or cuda:N; default: cpu")
    parser.add_argument("--embed", action="store_true",
                        help="serve decoders for embeddings instead of text")
    parser.add_argument("--kv", choices=("f16", "int8"), help="dtype of the KV cache")
    _add_rights(parser.add_argument_group("who may call"))
    _add_limits(parser.add_argument_group("limits"))
    _add_sizes(parser.add_argument_group("sizes"))
    parser.add_argument("--log-level", choices=("debug", "info", "warning", "error"),
                        default="info", help="default: info, a line for each request")
    return parser


def _add_rights(group):
    group.add_argument("--host", default=DEFAULTS.host, metavar="ADDRESS",
                       help="address to listen at; default: %(default)s")
    group.add_argument("--port", type=_port, default=8000,
                       help="port to listen at, 0: any free one; default: %(default)s")
    group.add_argument("--api-key", action="append", metavar="KEY", default=[],
                       help="key that requests must have; other users of this machine can see it "
                       "here, but not in FT_API_KEY or a file")
    group.add_argument("--api-key-file", type=_keys_in, metavar="FILE", default=[],
                       help="file with a key in each line")
    group.add_argument("--no-auth", action="store_true",
                       help="serve other machines without a key")
    group.add_argument("--allow-host", action="append", metavar="NAME", default=[],
                       help="further name of this server that Host may have; *: any")
    group.add_argument("--allow-origin", action="append", metavar="ORIGIN", default=[],
                       help="origin of pages that may call (CORS), as https://example.com")


def _add_limits(group):
    def add(name, kind, unit, what):
        default = getattr(DEFAULTS, name[2:].replace("-", "_"))
        group.add_argument(name, type=kind, default=default, metavar=unit,
                           help=f"{what}; default: {int(default)}")

    add("--max-body", _integer(1), "BYTES", "largest request (413)")
    add("--max-messages", _integer(1), "N", "most messages of a chat (413)")
    add("--max-inputs", _integer(1), "N", "most texts of an embedding, reranking or completion "
        "request (413)")
    add("--max-tokens", _integer(0), "TOKENS", "most new tokens of a choice (400), 0: as many as "
        "the context has room for")
    add("--request-timeout", _seconds, "SECONDS", "longest computation of a request (408)")
    add("--read-timeout", _seconds, "SECONDS", "longest arrival of a request (408)")
    add("--write-timeout", _seconds, "SECONDS", "longest time in which a client does not read "
        "its answer (disconnected)")
    add("--drain-timeout", _seconds, "SECONDS", "time for what runs at SIGTERM")
    add("--queue", _integer(0), "N", "choices of each model that may wait (429)")
    add("--unread-tokens", _integer(1), "TOKENS", "most tokens of a stream that wait for a slow "
        "client (cancelled)")


def _add_sizes(group):
    def add(name, low, unit, what):
        default = getattr(DEFAULTS, name[2:].replace("-", "_"))
        group.add_argument(name, type=_integer(low), default=default, metavar=unit, help=what)

    add("--threads", 0, "N", "threads of each model; default: all processors")
    add("--max-sequences", 1, "N", "choices of each model that run at the same time; default: "
        f"{DEFAULTS.max_sequences}")
    add("--context", 0, "TOKENS", "most of a sequence; default: the model's positions, at most "
        "4096")
    add("--cache-tokens", 0, "TOKENS", "of the KV cache of each model; default: max-sequences "
        "contexts, at most 65536")


def parse(arguments=None):
    """The options and the Settings; exits with a message if they contradict each other."""
    parser = make_parser()
    options = parser.parse_args(arguments)
    keys = [*options.api_key, *options.api_key_file]
    if not keys and os.environ.get("FT_API_KEY"):
        keys = [os.environ["FT_API_KEY"]]
    if options.no_auth and keys:
        parser.error("--no-auth: found an API key as well, expected one of the two")
    if any(not key.isascii() or not key.isprintable() or " " in key or not key for key in keys):
        parser.error("an API key: expected printable ASCII characters without spaces")
    if not keys and not options.no_auth and not is_loopback(options.host):
        parser.error(f"--host: found {options.host}, which other machines reach, expected "
                     "--api-key, --api-key-file or FT_API_KEY, or --no-auth")
    names = {name: getattr(options, name) for name in Settings.__dataclass_fields__
             if hasattr(options, name)}
    settings = Settings(api_keys=tuple(keys), allow_hosts=tuple(options.allow_host),
                        allow_origins=tuple(options.allow_origin), **names)
    options.names = _names(parser, options)
    return options, settings


def _names(parser, options):
    """A name for each model."""
    if len(options.name) > len(options.models):
        parser.error(f"--name: found {len(options.name)} names for {len(options.models)} models")
    files = [os.path.basename(path) for path in options.models]
    names = [name[:-3] if name.endswith(".ft") else name for name in files]
    names[:len(options.name)] = options.name
    if len(set(names)) < len(names) or "" in names:
        parser.error(f"names of the models: found {', '.join(names)}, expected different ones: "
                     "use --name")
    return names
