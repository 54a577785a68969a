"""The chat page in a browser, with the server that belongs to it.

FT_SCREENSHOTS names a folder for pictures of the page.

SPDX-License-Identifier: Apache-2.0
"""
import contextlib
import http.server
import os
import threading
import time
import unittest

import ftruntime as ft
import support
from browser import console, open_browser, resize
from peculiar_models import MARKUP, markup, without_template
from process import Process

KEY = "the-key-of-this-test"
ENDLESS = 100000  # tokens, which take longer than a test
SCREENS = [(width, height, scheme) for width, height in ((320, 640), (768, 900), (1920, 1080))
           for scheme in ("light", "dark")]


def chat(path, *texts, system=None, tokens):
    """What a model answers to the last of texts, which alternate, at temperature 0."""
    roles = ("user", "assistant") * len(texts)
    messages = [{"role": role, "content": text} for role, text in zip(roles, texts)]
    if system is not None:
        messages.insert(0, {"role": "system", "content": system})
    return ft.Model.open(path).chat(messages, max_new_tokens=tokens).text


class PageTest(unittest.TestCase):
    """Tests of the page of one server, in one browser."""

    options = ("--context", "131072")

    @classmethod
    def setUpClass(cls):
        cls.browser = open_browser()
        cls.addClassCleanup(cls.browser.quit)
        cls.paths = {name: make() for name, make in cls.models.items()}
        cls.server = cls.enterClassContext(Process(*cls.options, models=cls.paths.values()))

    def page(self, **options):
        from chat_page import ChatPage

        console(self.browser)  # forgets what earlier tests have caused
        return ChatPage(self.browser, self.server.url, **options)


class Conversations(PageTest):
    models = {"markup": markup, "plain": without_template}

    def choices(self, state):
        """How many are or were in a state."""
        return self.server.stats("markup")[state]

    def wait_for(self, condition):
        last = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), last, "nothing changes within 30 s")
            time.sleep(0.05)

    def test_a_conversation_has_the_answers_of_the_model_and_no_errors(self):
        page = self.page()
        page.settings(temperature=0, max_tokens=200, system="b")
        page.ask("a")
        first = page.answer()
        path = self.paths["markup"]
        self.assertEqual(first, chat(path, "a", system="b", tokens=200))
        page.ask("c")
        self.assertEqual(page.answer(), chat(path, "a", first, "c", system="b", tokens=200))
        self.assertRegex(page.notes()[-1], r"^200 tokens, [\d.]+ tokens/s, cut off")
        self.assertEqual(console(self.browser), [])

    def test_markup_of_models_and_people_is_text(self):
        page = self.page()
        page.settings(temperature=0, max_tokens=300)
        page.ask(MARKUP[1])
        answer = page.answer()
        self.assertIn("<script>", answer)
        self.assertEqual(page.texts("user"), [MARKUP[1]])
        self.assertEqual(page.all("#conversation :is(script, img, b, h1, style)"), [])
        self.assertEqual(self.browser.title, "FT chat")

    def test_an_answer_streams_until_stop_or_escape_cancels_it(self):
        from selenium.webdriver.common.keys import Keys

        page = self.page()
        page.settings(temperature=0, max_tokens=ENDLESS)
        for stop in (lambda: page.click("#stop"), lambda: page.type(Keys.ESCAPE)):
            before = self.choices("cancelled")
            page.ask("a")
            page.begun()
            self.assertTrue(page.busy())
            self.assertFalse(page.shown("#send"))
            stop()
            page.answer()
            self.assertEqual(page.notes()[-1], "stopped")
            self.assertTrue(page.shown("#send"))
            self.wait_for(lambda: self.choices("cancelled") == before + 1)
            self.assertEqual(self.choices("running"), 0)

    def test_a_new_conversation_cancels_and_forgets(self):
        page = self.page()
        page.settings(temperature=0, max_tokens=ENDLESS)
        before = self.choices("cancelled")
        page.ask("a")
        page.begun()
        page.click("#new")
        self.wait_for(lambda: self.choices("cancelled") == before + 1)
        self.assertEqual(page.all("article"), [])
        page.settings(max_tokens=20)
        page.wait(lambda: page.shown("#send"), "the answer has not ended")
        page.ask("b")
        self.assertEqual(page.answer(), chat(self.paths["markup"], "b", tokens=20))

    def test_a_model_without_a_chat_template_continues_the_text(self):
        page = self.page()
        page.choose("plain")
        page.settings(temperature=0, max_tokens=20)
        page.ask("a b")
        expected = ft.Model.open(self.paths["plain"]).generate(["a b"], max_new_tokens=20)[0].text
        self.assertEqual(page.answer(), expected)
        self.assertIn("has no chat template", page.notes()[-1])

    def test_the_message_of_a_refusal_is_shown_and_the_text_returns(self):
        page = self.page()
        page.settings(temperature=7)
        page.ask("not lost")
        self.assertIn("temperature", page.error())
        self.assertEqual(page.one("#message").get_property("value"), "not lost")
        self.assertEqual(page.all("article"), [])

    def test_the_keyboard_reaches_everything(self):
        from selenium.webdriver.common.keys import Keys

        resize(self.browser, 768, 900)
        page = self.page()
        page.settings(temperature=0, max_tokens=8)
        page.type("one", Keys.SHIFT, Keys.ENTER, Keys.NULL, "two")
        self.assertEqual(page.all("article"), [])
        page.type(Keys.ENTER)
        page.answer()
        self.assertEqual(page.texts("user"), ["one\ntwo"])
        self.assertEqual(self.browser.switch_to.active_element.get_property("id"), "message")
        self.browser.execute_script("document.activeElement.blur()")
        reached = []
        for _ in range(12):
            self.browser.switch_to.active_element.send_keys(Keys.TAB)
            reached.append(self.browser.switch_to.active_element.get_property("id"))
        self.assertEqual(set(reached) - {""}, {
            "model", "toggle", "new", "system", "temperature", "max-tokens", "key", "conversation",
            "message", "send"})

    def test_every_control_has_a_name(self):
        page = self.page()
        page.settings()
        for field in page.all("input, select, textarea"):
            labels = "return Array.from(arguments[0].labels, label => label.textContent).join()"
            self.assertNotEqual(self.browser.execute_script(labels, field), "",
                                field.get_property("id"))
        for other in page.all("button, section, [role=log]"):
            if other.is_displayed():
                self.assertNotEqual(other.accessible_name, "", other.get_property("id"))

    def test_no_screen_scrolls_as_a_whole(self):
        for width, height, scheme in SCREENS:
            with self.subTest(width=width, scheme=scheme):
                resize(self.browser, width, height, scheme)
                page = self.page()
                page.settings(temperature=0, max_tokens=120)
                page.ask("long" * 60)
                page.answer()
                self.picture(f"settings-{scheme}-{width}")
                self.assert_fits(page)
                if page.shown("#toggle"):
                    page.click("#toggle")
                self.picture(f"conversation-{scheme}-{width}")
                self.assert_fits(page)

    def assert_fits(self, page):
        for element in page.all("html, header, section, #conversation, article, #composer"):
            self.assert_shows_all(element, "Width")
        self.assert_shows_all(page.one("html"), "Height")  # the conversation scrolls, not the page

    def assert_shows_all(self, element, side):
        size, visible = (element.get_property(name + side) for name in ("scroll", "client"))
        self.assertLessEqual(size, visible, element.tag_name)

    def picture(self, name):
        if "FT_SCREENSHOTS" in os.environ:
            path = os.path.join(os.environ["FT_SCREENSHOTS"], name + ".png")
            self.assertTrue(self.browser.save_screenshot(path))

    # ---- Other sites ----

    def test_a_page_of_another_origin_reads_nothing(self):
        with other_site() as url:
            self.browser.get(url)
            script = ("const [url, method, mode, done] = arguments; fetch(url, {method, mode, "
                      "body: method === 'POST' ? '{}' : undefined})"
                      ".then(r => r.text()).then(done, e => done(e.name))")
            for path, method in (("v1/models", "GET"), ("v1/chat/completions", "POST")):
                found = self.browser.execute_async_script(script, self.server.url + path, method,
                                                          "cors")
                self.assertEqual(found, "TypeError")
            before = self.choices("finished")
            self.browser.execute_async_script(script, self.server.url + "v1/completions", "POST",
                                              "no-cors")
            self.assertEqual(self.choices("finished"), before)

    def test_a_foreign_name_of_this_machine_is_refused(self):
        self.browser.get(f"http://foreign.test:{self.server.port}/")
        self.assertNotIn("FT chat", self.browser.title)
        self.assertIn("host_not_allowed", self.browser.page_source)


class Locked(PageTest):
    models = {"decoder": lambda: support.generated("decoder")}
    options = ("--api-key", KEY)

    def test_a_wrong_key_shows_the_message_and_a_right_one_works(self):
        page = self.page(models=False)
        self.assertIn("key", page.error())
        self.assertEqual(page.all("#model option"), [])
        page.settings(key=KEY, temperature=0, max_tokens=20)
        page.wait(lambda: page.all("#model option"), "the page lists no models")
        self.assertFalse(page.shown("#error"))
        page.ask("a")
        self.assertEqual(page.answer(), chat(self.paths["decoder"], "a", tokens=20))
        page.settings(key="wrong")
        page.ask("b")
        self.assertIn("key", page.error())
        page.wait(lambda: page.shown("#send"), "the answer has not ended")
        self.assertEqual(self.browser.switch_to.active_element.get_property("id"), "key")
        self.assertEqual(page.one("#message").get_property("value"), "b")

    def test_a_key_is_not_stored(self):
        page = self.page(models=False)
        page.settings(key=KEY)
        page.wait(lambda: page.all("#model option"), "the page lists no models")
        stored = "return [document.cookie, localStorage.length, sessionStorage.length]"
        self.assertEqual(self.browser.execute_script(stored), ["", 0, 0])
        page = self.page(models=False)
        self.assertEqual(page.one("#key").get_property("value"), "")


class Embedders(PageTest):
    models = {"embedder": lambda: support.generated("embedder")}
    options = ()

    def test_a_server_without_decoders_says_so(self):
        page = self.page(models=False)
        self.assertEqual(page.error(), "No model of this server writes text.")


class Failures(unittest.TestCase):
    def test_what_breaks_off_is_said_and_what_has_come_is_kept(self):
        browser = open_browser()
        self.addCleanup(browser.quit)
        from chat_page import ChatPage

        with Process("--context", "131072", "--request-timeout", "1") as server:
            page = ChatPage(browser, server.url)
            page.settings(temperature=0, max_tokens=ENDLESS)
            page.ask("a")
            self.assertIn("time", page.error())
            page.ask("b")
            page.begun()
            server.kill()
            self.assertIn("incomplete", page.error())
            self.assertEqual([len(text) > 0 for text in page.texts("assistant")], [True, True])
            page.ask("c")
            page.wait(lambda: "reached" in page.error(), "nobody says that the server is gone")
            self.assertEqual(page.one("#message").get_property("value"), "c")
            self.assertEqual(page.texts("user"), ["a", "b"])


@contextlib.contextmanager
def other_site():
    """The address of an empty page on another port, which is another origin."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as site:
        thread = threading.Thread(target=site.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{site.server_address[1]}/"
        finally:
            site.shutdown()
            thread.join()


if __name__ == "__main__":
    unittest.main()
