"""Work for a client ends when the client goes away.

SPDX-License-Identifier: Apache-2.0
"""
from __future__ import annotations

import asyncio


async def disconnected(receive):
    """Wait until the client has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_disconnected(receive, work):
    """The result of a coroutine, or None: the client has gone, and the coroutine is cancelled."""
    task = asyncio.ensure_future(work)
    gone = asyncio.ensure_future(disconnected(receive))
    try:
        await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        await cancelled(task, gone)


async def cancelled(*tasks):
    """Cancel tasks and wait for their ends."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def all_results(works):
    """The results of all coroutines; the first failure cancels the others."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    finally:
        await cancelled(*tasks)
