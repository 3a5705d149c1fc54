// The bench's job for Crawlee's HttpCrawler, which leaves the page to its user: htmlparser2, which stops reading once it
// has all fields. The settings are in crawlee.mjs.

import { HttpCrawler } from "@crawlee/http";
import { configuration, options } from "./crawlee.mjs";
import { absent, end, write } from "./job.mjs";
import { rowOf } from "./fields.mjs";

const crawler = new HttpCrawler(
  {
    ...options,
    requestHandler({ body }) {
      write(rowOf(body.toString(), absent, true));
    },
  },
  configuration,
);
await crawler.run();
await end();
