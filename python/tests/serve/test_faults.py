"""What a server loses when it is killed, overloaded, read by nobody, or cannot write its log.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import json
import os
import socket
import tempfile
import unittest
from concurrent.futures import ThreadPoolExecutor

from client import Refused, ask
from ftruntime.serve.log import Log
from process import LONG, Process, chat, head
from retrying import Client, alone, free_port, running, wait_for

CLIENTS = 8


class Kills(unittest.TestCase):
    TOKENS = 600  # of an answer, which takes long enough to be interrupted
    QUESTIONS = 2

    def test_a_kill_loses_the_open_answers_alone(self):
        with Process() as server:
            clients = [Client(server.port, number, self.QUESTIONS, self.TOKENS)
                       for number in range(CLIENTS)]
            for client in clients:
                client.prepare()
            with contextlib.ExitStack() as restarted:
                with running(clients):
                    server.kill()
                    restarted.enter_context(Process(port=server.port))
        self.assertEqual([wrong for client in clients for wrong in client.wrong], [])
        lost = [len(client.lost) for client in clients]
        self.assertGreater(sum(lost), 0)
        self.assertLessEqual(max(lost), 1, "a client loses no more than its open answer")


class FullQueue(unittest.TestCase):
    def test_a_full_queue_refuses_and_what_it_has_taken_is_answered(self):
        with Process("--queue", "2", "--max-sequences", "2") as server, \
                ThreadPoolExecutor(32) as threads:
            runs = [threads.submit(self.outcome, server.port, f"question {i}")
                    for i in range(32)]
            outcomes = [run.result(LONG) for run in runs]
            refusals = [refusal for refusal in outcomes if refusal is not None]
            self.assertGreater(len(refusals), 0)
            self.assertGreater(len(outcomes) - len(refusals), 3)
            for refusal in refusals:
                self.assertEqual(refusal.status, 429)
                self.assertGreaterEqual(int(refusal.headers["Retry-After"]), 1)
                self.assertEqual(refusal.error["code"], "queue_full")
            self.assertIsNone(self.outcome(server.port, "afterwards"))

    def outcome(self, port, question):
        """None for an answer, which must be right."""
        try:
            self.assertEqual(ask(port, question, 400), alone(question, 400))
        except Refused as refusal:
            return refusal
        return None


class SlowReaders(unittest.TestCase):
    STALLED = 4

    def test_who_stops_reading_is_cancelled_and_others_go_on(self):
        with Process("--context", "131072", "--write-timeout", "3") as server:
            self.assertEqual(ask(server.port, "before", 100), alone("before", 100))
            memory = resident(server)
            stalled = [stall(server) for _ in range(self.STALLED)]
            try:
                for i in range(20):
                    question = f"question {i}"
                    self.assertEqual(ask(server.port, question, 100), alone(question, 100))
                wait_for(lambda: server.stats()["cancelled"] == self.STALLED,
                         "the requests that nobody reads are not cancelled")
                self.assertEqual(server.stats()["running"], 0)
                self.assertLess(resident(server) - memory, 64 << 20)
            finally:
                for connection in stalled:
                    connection.close()


def stall(server):
    """Ask for a long answer, and read nothing of it, into the smallest of buffers."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    connection.connect(("127.0.0.1", server.port))
    body = json.dumps(chat(temperature=0, max_tokens=100000, stream=True)).encode()
    connection.sendall(head(len(body)) + body)
    return connection


def resident(server):
    """Bytes of memory that the process of a server holds."""
    with open(f"/proc/{server.pid}/status") as status:
        line = next(line for line in status if line.startswith("VmRSS:"))
    return int(line.split()[1]) << 10


class FullDisks(unittest.TestCase):
    def test_a_log_that_cannot_be_written_stops_nothing(self):
        with open("/dev/full", "r+b", buffering=0) as full, \
                Process(port=free_port(), log=full) as server:
            for i in range(5):
                question = f"question {i}"
                self.assertEqual(ask(server.port, question, 50), alone(question, 50))
            lost = 1 + 5  # the address, and the requests
            self.assertIn(f"\nftruntime_log_lost_total {lost}\n", server.http.get("/metrics").text)
            server.terminate()
            self.assertEqual(server.wait(), 0)

    def test_a_log_says_how_many_entries_it_has_lost(self):
        with tempfile.TemporaryFile() as file, open("/dev/full", "wb") as full:
            log = Log(file.fileno())
            log.write("first")
            kept = os.dup(file.fileno())
            os.dup2(full.fileno(), file.fileno())
            log.write("lost")
            log.write("lost, too")
            os.dup2(kept, file.fileno())
            os.close(kept)
            log.write("last")
            file.seek(0)
            self.assertEqual(file.read().decode().splitlines(), [
                "first", "", "2 entries of the log could not be written", "last"])
            self.assertEqual(log.lost, 2)


if __name__ == "__main__":
    unittest.main()
