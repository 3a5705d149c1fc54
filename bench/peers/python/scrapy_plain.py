"""The bench's job for Scrapy as it comes: its own selectors, items and feed export, and all of its middlewares.

Settings: as many requests under way as everybody has, and its log at INFO, since DEBUG writes several lines a page.
"""

import sys

import scrapy
from scrapy.crawler import CrawlerProcess

ADDRESSES, ROWS, CONCURRENCY = sys.argv[1:4]
ABSENT = "absent" in sys.argv[4:]


def text(response, selector):
    found = response.css(selector + "::text").get()
    return None if found is None else found.strip()


class Products(scrapy.Spider):
    name = "products"

    async def start(self):
        with open(ADDRESSES) as addresses:
            for address in addresses:
                yield scrapy.Request(address.strip(), dont_filter=True)

    def parse(self, response):
        row = {
            "title": text(response, "h1.title"),
            "price": text(response, "main .price"),
            "sku": text(response, "div.sku"),
            "stock": text(response, "div.stock"),
            "canonical": response.css("link[rel=canonical]::attr(href)").get(),
        }
        if ABSENT:
            row["absent"] = text(response, "div.absent")
        yield row


process = CrawlerProcess(
    {
        "CONCURRENT_REQUESTS": int(CONCURRENCY),
        "FEEDS": {ROWS: {"format": "jsonlines", "overwrite": True}},
        "LOG_LEVEL": "INFO",
    }
)
process.crawl(Products)
process.start()
