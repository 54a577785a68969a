"""Replicas of the server that Ray Serve keeps, as samples/cluster/ray_serve.py starts them.

SPDX-License-Identifier: Apache-2.0
"""
import os
import signal
import sys
import unittest

import support
from retrying import Client, free_port, running, wait_for

sys.path.append(os.path.join(support.SOURCES, "samples/cluster"))

CLIENTS = 8
QUESTIONS = 2
TOKENS = 600
PREFIX = "SERVE_REPLICA::"


class Replicas(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        try:
            import ray
            from ray import serve
        except ImportError:
            raise unittest.SkipTest("no Ray Serve") from None
        from ray_serve import application

        cls.ray = ray
        cls.addClassCleanup(ray.shutdown)
        ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="error")
        cls.port = free_port()
        serve.start(http_options={"host": "127.0.0.1", "port": cls.port})
        cls.addClassCleanup(serve.shutdown)
        serve.run(application([support.generated("decoder")], replicas=2))

    def replicas(self):
        """Their names."""
        actors = self.ray.util.list_named_actors(all_namespaces=True)
        return {actor["name"] for actor in actors if actor["name"].startswith(PREFIX)}

    def process(self, replica):
        actor = self.ray.get_actor(replica, "serve")
        return self.ray.get(actor.__ray_call__.remote(lambda _: os.getpid()))

    def test_a_killed_replica_loses_its_open_answers_alone(self):
        before = self.replicas()
        self.assertEqual(len(before), 2)
        killed = before.pop()
        process = self.process(killed)
        clients = [Client(self.port, number, QUESTIONS, TOKENS) for number in range(CLIENTS)]
        for client in clients:
            client.prepare()
        with running(clients):
            os.kill(process, signal.SIGKILL)
        self.assertEqual([wrong for client in clients for wrong in client.wrong], [])
        lost = [len(client.lost) for client in clients]
        self.assertGreater(sum(lost), 0)
        self.assertLessEqual(max(lost), 1, "a client loses no more than its open answer")
        wait_for(lambda: len(self.replicas() - {killed}) == 2, "the replica is not replaced")
