"""Serves artifacts with Ray Serve: replicas of ftruntime.serve behind one address.

    ray_serve.py [--replicas N] [--host ADDRESS] [--port PORT] MODEL.ft...

Connects to the cluster of RAY_ADDRESS, or starts Ray on this machine. A replica is a process with CPUS processors, 1
unless the variable says otherwise. Each machine has the artifacts under the same paths. A replica that is lost is
replaced, and loses the requests that are open in it: clients send them again. FT_API_KEY holds the key that requests
must have; an address that other machines reach needs one.

SPDX-License-Identifier: Apache-2.0
"""

import argparse
import os
from contextlib import suppress

import ray
from ray import serve

CPUS = int(os.environ.get("CPUS", "1"))


def application(paths, replicas=1, **settings):
    """The Ray Serve application of artifacts; settings are those of ftruntime.serve.Settings."""

    def build():
        """The ASGI application of a replica."""
        import ftruntime as ft
        from ftruntime.serve import Settings, create_app

        models = {os.path.basename(path).removesuffix(".ft"): ft.Model.open(path, threads=CPUS) for path in paths}
        return create_app(models, Settings(threads=CPUS, **settings))

    deployment = serve.deployment(serve.ingress(build)())
    return deployment.options(
        name="ftruntime",
        num_replicas=replicas,
        ray_actor_options={"num_cpus": CPUS},
        max_ongoing_requests=64,
        health_check_period_s=2,
    ).bind()


def main():
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("models", nargs="+", metavar="MODEL.ft")
    parser.add_argument("--replicas", type=int, default=1)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8000)
    arguments = parser.parse_args()
    keys = tuple(filter(None, [os.environ.get("FT_API_KEY")]))
    if arguments.host != "127.0.0.1" and not keys:
        parser.error(f"--host: found {arguments.host}, which other machines may reach, expected a key in FT_API_KEY")
    paths = [os.path.abspath(path) for path in arguments.models]
    ray.init(log_to_driver=False, include_dashboard=False)
    serve.start(http_options={"host": arguments.host, "port": arguments.port})
    names = ("*",) if keys else ()  # by which clients may call
    with suppress(KeyboardInterrupt):
        serve.run(application(paths, arguments.replicas, api_keys=keys, allow_hosts=names), blocking=True)
    serve.shutdown()


if __name__ == "__main__":
    main()
