// The bench's job for what one writes by hand in Node: undici, which is Node's own HTTP client, and htmlparser2.
//
// undici keeps a pool for each host; as many workers as there may be requests under way take addresses off one list.

import { Agent, request } from "undici";
import { absent, addresses, concurrency, early, end, write } from "./job.mjs";
import { rowOf } from "./fields.mjs";

const dispatcher = new Agent({ connections: concurrency, keepAliveTimeout: 60_000 });
let next = 0;

async function work() {
  while (next < addresses.length) {
    const address = addresses[next++];
    const { statusCode, body } = await request(address, { dispatcher });
    const page = await body.text();
    if (statusCode !== 200) throw new Error(`${address}: status ${statusCode}`);
    write(rowOf(page, absent, early));
  }
}

await Promise.all(Array.from({ length: concurrency }, work));
await end();
await dispatcher.close();
