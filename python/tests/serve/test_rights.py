"""Who may call the server: addresses, keys, Host, Origin; and what it tells nobody.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import io
import os
import socket
import tempfile
import unittest
from unittest import mock

import ftruntime as ft
from ftruntime.serve import Settings, create_app, hosts, keys, options
from starlette.testclient import TestClient

import support
from process import Process, chat

KEY = "sk-test-0123456789"
SECRET = "a very private prompt"


class Addresses(unittest.TestCase):
    """Of the command line."""

    def refusal(self, *arguments):
        """The message with which a command line is refused."""
        with contextlib.redirect_stderr(io.StringIO()) as message, \
                self.assertRaises(SystemExit) as caught:
            options.parse(["model.ft", *arguments])
        self.assertEqual(caught.exception.code, 2)
        return message.getvalue()

    def setUp(self):
        self.enterContext(mock.patch.dict(os.environ)).pop("FT_API_KEY", None)

    def test_the_default_address_is_loopback(self):
        self.assertEqual(options.parse(["model.ft"])[1].host, "127.0.0.1")

    def test_other_addresses_are_refused_without_a_key(self):
        for host in ("0.0.0.0", "::", "192.0.2.1", "server.example", ""):
            self.assertIn("other machines reach", self.refusal("--host", host))

    def test_other_addresses_are_served_with_a_key_or_with_no_auth(self):
        for arguments in (["--api-key", KEY], ["--no-auth"]):
            settings = options.parse(["model.ft", "--host", "0.0.0.0", *arguments])[1]
            self.assertEqual(settings.host, "0.0.0.0")

    def test_a_key_may_come_from_the_environment_or_a_file(self):
        os.environ["FT_API_KEY"] = KEY
        self.assertEqual(options.parse(["model.ft"])[1].api_keys, (KEY,))
        with tempfile.NamedTemporaryFile("w") as file:
            file.write(f"{KEY}\nsk-second\n")
            file.flush()
            settings = options.parse(["model.ft", "--api-key-file", file.name])[1]
        self.assertEqual(settings.api_keys, (KEY, "sk-second"))

    def test_contradictions_are_refused(self):
        self.assertIn("one of the two", self.refusal("--no-auth", "--api-key", KEY))
        self.assertIn("printable", self.refusal("--api-key", "a key"))
        self.assertIn("different", self.refusal("model.ft"))
        self.assertIn("/dev/null", self.refusal("--api-key-file", "/dev/null"))
        self.assertIn("0 to 65535", self.refusal("--port", "70000"))
        self.assertIn("more than 0", self.refusal("--request-timeout", "nan"))


class Names(unittest.TestCase):
    """Of servers, in Host, and of pages, in Origin."""

    def accepts(self, name, host="127.0.0.1", allow_hosts=()):
        from starlette.datastructures import Headers

        try:
            hosts.require_host(Headers({"host": name}),
                               Settings(host=host, allow_hosts=allow_hosts))
        except hosts.ApiError:
            return False
        return True

    def test_a_local_server_has_local_names(self):
        for name in ("localhost", "LOCALHOST:8000", "127.0.0.1:8000", "[::1]:8000"):
            self.assertTrue(self.accepts(name), name)
        for name in ("evil.example", "192.0.2.1", "localhost.evil.example", "evil@localhost",
                     "localhost:80:80", "", "127.0.0.1.evil.example", "[::1", "localhost/"):
            self.assertFalse(self.accepts(name), name)

    def test_a_wildcard_has_all_addresses_but_no_names(self):
        self.assertTrue(self.accepts("192.0.2.1:8000", host="0.0.0.0"))
        self.assertTrue(self.accepts("[2001:db8::1]", host="::"))
        self.assertFalse(self.accepts("evil.example", host="0.0.0.0"))

    def test_further_names_can_be_allowed(self):
        self.assertTrue(self.accepts("Llm.Example:443", allow_hosts=("llm.example",)))
        self.assertTrue(self.accepts("anything", allow_hosts=("*",)))


class Keys(unittest.TestCase):
    def setUp(self):
        model = ft.Model.open(support.generated("decoder"))
        settings = Settings(api_keys=("sk-other", KEY), allow_origins=("https://page.example",))
        self.client = self.enterContext(TestClient(create_app({"decoder": model}, settings),
                                                   base_url="http://localhost"))

    def status(self, path, key=None, **headers):
        if key is not None:
            headers["Authorization"] = "Bearer " + key
        return self.client.get(path, headers=headers).status_code

    def test_data_needs_a_key(self):
        for path in ("/v1/models", "/metrics", "/v1/nothing", "/other"):
            self.assertEqual(self.status(path), 401, path)
            for key in (b"", b"sk-wrong", KEY.encode() + b"0", KEY.encode()[:-1], b"\xe9"):
                self.assertEqual(self.status(path, Authorization=b"Bearer " + key), 401, key)
        for key in (KEY, "sk-other"):
            self.assertEqual(self.status("/v1/models", key), 200)

    def test_only_bearer_is_a_scheme(self):
        self.assertEqual(self.status("/v1/models", Authorization="Basic " + KEY), 401)
        self.assertEqual(self.status("/v1/models", Authorization=KEY), 401)

    def test_health_needs_no_key(self):
        self.assertEqual(self.status("/health"), 200)

    def test_every_key_is_compared_in_constant_time(self):
        with mock.patch.object(keys.hmac, "compare_digest", return_value=False) as compare:
            self.assertEqual(self.status("/v1/models", KEY), 401)
        self.assertEqual(compare.call_count, 2)

    def test_requests_for_another_host_are_refused(self):
        self.assertEqual(self.status("/health", Host="evil.example"), 403)
        self.assertEqual(self.status("/v1/models", KEY, Host="evil.example"), 403)

    def test_pages_of_other_servers_are_refused(self):
        for origin in ("http://evil.example", "null", "http://localhost:81", "file://"):
            self.assertEqual(self.status("/v1/models", KEY, Origin=origin), 403, origin)
        self.assertEqual(self.status("/v1/models", KEY, Origin="http://localhost"), 200)

    def test_only_origins_that_are_allowed_get_cors(self):
        allowed = {"Origin": "https://page.example"}
        found = self.client.options("/v1/chat/completions", headers=allowed)
        self.assertEqual(found.headers["Access-Control-Allow-Origin"], "https://page.example")
        self.assertIn("Authorization", found.headers["Access-Control-Allow-Headers"])
        found = self.client.get("/v1/models", headers=dict(allowed, Authorization="Bearer " + KEY))
        self.assertEqual(found.headers["Access-Control-Allow-Origin"], "https://page.example")
        found = self.client.get("/health", headers={"Origin": "http://localhost"})
        self.assertNotIn("Access-Control-Allow-Origin", found.headers)
        self.assertIn("Origin", found.headers["Vary"])

    def test_forms_of_other_pages_are_refused(self):
        found = self.client.post("/v1/chat/completions", content=b'{"model": "decoder"}',
                                 headers={"Authorization": "Bearer " + KEY,
                                          "Content-Type": "text/plain"})
        self.assertEqual(found.status_code, 415)

    def test_every_answer_restricts_what_a_browser_does_with_it(self):
        for path in ("/health", "/missing"):
            headers = self.client.get(path).headers
            self.assertEqual(headers["X-Content-Type-Options"], "nosniff")
            self.assertIn("default-src 'self'", headers["Content-Security-Policy"])
            self.assertIn("frame-ancestors 'none'", headers["Content-Security-Policy"])


class Secrets(unittest.TestCase):
    def test_keys_and_prompts_are_not_logged(self):
        with Process("--api-key", KEY, "--log-level", "debug") as server:
            for key in (KEY, "sk-wrong-key"):
                headers = {"Authorization": "Bearer " + key}
                for body in (chat(SECRET, max_tokens=2), chat(SECRET, temperature="hot"),
                             chat(SECRET * 1000), chat(SECRET, stream=True, max_tokens=2)):
                    server.http.post("/v1/chat/completions", json=body, headers=headers)
                server.http.get("/" + SECRET, params={"key": key}, headers=headers)
            server.terminate()
            self.assertEqual(server.wait(), 0)
            log = server.log()
        self.assertIn("/v1/chat/completions 200", log)
        for secret in (SECRET, "private", KEY, "sk-wrong-key"):
            self.assertNotIn(secret, log)

    def test_a_failure_of_the_server_tells_nothing_of_it(self):
        app = create_app({"decoder": ft.Model.open(support.generated("decoder"))})
        app.state.service.models.get = mock.Mock(side_effect=KeyError(SECRET))
        with TestClient(app, base_url="http://localhost") as client, \
                self.assertLogs("ftruntime.serve", "ERROR") as logged:
            found = client.post("/v1/chat/completions", json=chat())
        self.assertEqual(found.status_code, 500)
        self.assertEqual(found.json()["error"]["message"], "the server has failed")
        self.assertIn("KeyError", logged.output[0])
        self.assertNotIn("private", logged.output[0])

    def test_messages_name_models_without_their_path(self):
        app = create_app({"decoder": ft.Model.open(support.generated("decoder"))})
        with TestClient(app, base_url="http://localhost") as client:
            served = app.state.service.models.get("decoder")
            served.model._prompt_ids = mock.Mock(
                side_effect=ft.FtError(f"{served.model.path}: has failed", 6, "FT_EARG"))
            found = client.post("/v1/completions", json={"prompt": "a"})
        self.assertEqual((found.status_code, found.json()["error"]["message"]),
                         (400, "decoder: has failed"))

    def test_the_server_listens_at_loopback_alone(self):
        with Process() as server:
            with self.assertRaises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.2", server.port), 10)
            self.assertEqual(server.http.get("/health").json(), {"status": "ok"})


if __name__ == "__main__":
    unittest.main()
