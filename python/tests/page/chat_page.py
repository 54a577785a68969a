"""The chat page as a person uses it.

SPDX-License-Identifier: Apache-2.0
"""
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

SECONDS = 30  # after which something has gone wrong


class ChatPage:
    """The page of a server in a browser."""

    def __init__(self, browser, url, models=True):
        self.browser = browser
        browser.get(url)
        if models:
            self.wait(lambda: self.all("#model option"), "the page lists no models")

    def wait(self, condition, message):
        return WebDriverWait(self.browser, SECONDS, 0.02).until(lambda _: condition(), message)

    def all(self, selector):
        return self.browser.find_elements(By.CSS_SELECTOR, selector)

    def one(self, selector):
        return self.browser.find_element(By.CSS_SELECTOR, selector)

    def shown(self, selector):
        return self.one(selector).is_displayed()

    def click(self, selector):
        self.one(selector).click()

    def settings(self, **values):
        """Fill in fields by their ids, with _ for -."""
        if not self.shown("#settings"):
            self.click("#toggle")
        for id, value in values.items():
            field = self.one("#" + id.replace("_", "-"))
            field.clear()
            field.send_keys(str(value), Keys.TAB)

    def choose(self, model):
        self.one("#model").send_keys(model)

    def type(self, *keys):
        self.one("#message").send_keys(*keys)

    def ask(self, text):
        self.type(text, Keys.ENTER)

    # ---- What it shows ----

    def texts(self, role):
        return [element.get_property("textContent") for element in self.all(f".{role} .text")]

    def notes(self):
        return [element.text for element in self.all(".assistant .note")]

    def busy(self):
        return len(self.all("[aria-busy=true]")) > 0

    def answer(self):
        """The last answer, when it is complete."""
        self.wait(lambda: self.all(".assistant"), "no answer has begun")
        self.wait(lambda: not self.busy(), "the answer does not end")
        return self.texts("assistant")[-1]

    def error(self):
        self.wait(lambda: self.shown("#error"), "no error is shown")
        return self.one("#error").text

    def begun(self):
        self.wait(lambda: "".join(self.texts("assistant")[-1:]), "no text has come")
