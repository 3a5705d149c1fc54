// What the bench tells a job: node X.mjs ADDRESSES ROWS CONCURRENCY [absent]

import { createWriteStream, readFileSync } from "node:fs";
import { once } from "node:events";

const [list, rowFile, atOnce, ...rest] = process.argv.slice(2);

export const addresses = readFileSync(list, "utf8").trim().split("\n");
export const concurrency = Number(atOnce);
export const absent = rest.includes("absent");
export const early = rest.includes("early");

const out = createWriteStream(rowFile);

// write appends a row; the stream buffers it.
export const write = (row) => out.write(JSON.stringify(row) + "\n");

// end returns once all rows are in the file.
export async function end() {
  out.end();
  await once(out, "finish");
}
