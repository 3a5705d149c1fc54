"""The bench's job for what one writes by hand in Python: aiohttp's client, lexbor (selectolax) and uvloop.

The connector keeps a connection to every host, cookies are off, and as many workers as there may be requests under way
take addresses off one iterator.
"""

import asyncio
import json
import sys

import aiohttp
import uvloop
from selectolax.lexbor import LexborHTMLParser

ADDRESSES, ROWS, CONCURRENCY = sys.argv[1:4]
ABSENT = "absent" in sys.argv[4:]


def text(page, selector):
    node = page.css_first(selector)
    return None if node is None else node.text(strip=True)


def row_of(body):
    page = LexborHTMLParser(body)
    canonical = page.css_first("link[rel=canonical]")
    row = {
        "title": text(page, "h1.title"),
        "price": text(page, "main .price"),
        "sku": text(page, "div.sku"),
        "stock": text(page, "div.stock"),
        "canonical": None if canonical is None else canonical.attributes["href"],
    }
    if ABSENT:
        row["absent"] = text(page, "div.absent")
    return row


async def work(session, addresses, rows):
    for address in addresses:
        async with session.get(address) as response:
            body = await response.read()
        if response.status != 200:
            raise RuntimeError(f"{address}: status {response.status}")
        rows.write(json.dumps(row_of(body)) + "\n")


async def main():
    with open(ADDRESSES) as file:
        addresses = iter(file.read().split())
    connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=60)
    with open(ROWS, "w") as rows:
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            async with asyncio.TaskGroup() as workers:
                for _ in range(int(CONCURRENCY)):
                    workers.create_task(work(session, addresses, rows))


uvloop.run(main())
