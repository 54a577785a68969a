"""Chromium without a window, as selenium drives it.

SPDX-License-Identifier: Apache-2.0
"""
import shutil
import unittest

from ending import at_end

ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--host-resolver-rules=MAP foreign.test 127.0.0.1")


def open_browser():
    """A browser that keeps what its console says; SkipTest where one is missing."""
    try:
        from selenium import webdriver
    except ImportError:
        raise unittest.SkipTest("no selenium") from None
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        raise unittest.SkipTest("no chromium with chromedriver")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ARGUMENTS:
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options, webdriver.ChromeService(driver))
    at_end(browser.quit)
    browser.set_page_load_timeout(30)
    return browser


def resize(browser, width, height, scheme="light"):
    """The size of the page, and "light" or "dark"; a window would be at least 500 wide."""
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
        "width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {
        "features": [{"name": "prefers-color-scheme", "value": scheme}]})


def console(browser):
    """The warnings and errors in the console since the last call."""
    return [entry["message"] for entry in browser.get_log("browser")
            if entry["level"] in ("WARNING", "SEVERE")]
