"""Names and times of answers.

SPDX-License-Identifier: Apache-2.0
"""
import time
import uuid


def new_id(prefix):
    return f"{prefix}-{uuid.uuid4().hex}"


def now():
    """Seconds since 1970."""
    return int(time.time())
