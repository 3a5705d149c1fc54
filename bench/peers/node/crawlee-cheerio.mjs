// The bench's job for Crawlee's CheerioCrawler; the settings are in crawlee.mjs.

import { CheerioCrawler } from "@crawlee/cheerio";
import { configuration, options } from "./crawlee.mjs";
import { absent, end, write } from "./job.mjs";

const crawler = new CheerioCrawler(
  {
    ...options,
    requestHandler({ $ }) {
      const text = (selector) => {
        const found = $(selector).first();
        return found.length === 0 ? null : found.text().trim();
      };
      const row = {
        title: text("h1.title"),
        price: text("main .price"),
        sku: text("div.sku"),
        stock: text("div.stock"),
        canonical: $("link[rel=canonical]").attr("href") ?? null,
      };
      if (absent) row.absent = text("div.absent");
      write(row);
    },
  },
  configuration,
);
await crawler.run();
await end();
