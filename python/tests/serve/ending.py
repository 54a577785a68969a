"""Children of the tests end with them, also when a signal ends the tests.

SPDX-License-Identifier: Apache-2.0
"""
import atexit
import signal


def at_end(function):
    """Call a function when the tests end; more than one call must do no harm."""
    atexit.register(function)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which unittest does not catch
