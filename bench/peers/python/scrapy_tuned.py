"""The bench's job for Scrapy as an expert tunes it.

lexbor (selectolax) parses in place of lxml; uvloop is the event loop; aiohttp, which Scrapy ships a handler for, downloads
in place of Twisted's client. Of middlewares and extensions those that a list of addresses needs are left: none. Rows are
written by the callback, which spares the feed export's signals, and the garbage collector looks at young objects less often.
"""

import gc
import json
import sys

import scrapy
from scrapy.crawler import AsyncCrawlerProcess
from scrapy.settings.default_settings import DOWNLOADER_MIDDLEWARES_BASE, EXTENSIONS_BASE, SPIDER_MIDDLEWARES_BASE
from selectolax.lexbor import LexborHTMLParser

ADDRESSES, ROWS, CONCURRENCY = sys.argv[1:4]
ABSENT = "absent" in sys.argv[4:]


def text(page, selector):
    node = page.css_first(selector)
    return None if node is None else node.text(strip=True)


class Products(scrapy.Spider):
    name = "products"

    def __init__(self):
        super().__init__()
        self.rows = open(ROWS, "w")

    async def start(self):
        with open(ADDRESSES) as addresses:
            for address in addresses:
                yield scrapy.Request(address.strip(), dont_filter=True)

    def parse(self, response):
        page = LexborHTMLParser(response.body)
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
        self.rows.write(json.dumps(row) + "\n")

    def closed(self, reason):
        self.rows.close()


gc.set_threshold(100_000, 50, 50)
aiohttp = "scrapy.core.downloader.handlers._aiohttp.AiohttpDownloadHandler"
process = AsyncCrawlerProcess(
    {
        "CONCURRENT_REQUESTS": int(CONCURRENCY),
        "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
        "DOWNLOAD_HANDLERS": {"http": aiohttp},
        "DOWNLOADER_MIDDLEWARES": dict.fromkeys(DOWNLOADER_MIDDLEWARES_BASE),
        "SPIDER_MIDDLEWARES": dict.fromkeys(SPIDER_MIDDLEWARES_BASE),
        "EXTENSIONS": dict.fromkeys(EXTENSIONS_BASE),
        "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
        "DUPEFILTER_CLASS": "scrapy.dupefilters.BaseDupeFilter",
        "TELNETCONSOLE_ENABLED": False,
        "LOG_LEVEL": "WARNING",
    }
)
process.crawl(Products)
process.start()
