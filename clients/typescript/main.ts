// Does the main job by the client: main.ts SERVER KEY URL…
// It makes a group and a scraper, launches a run, waits for it, reads its rows, and exports them.
import createClient from "openapi-fetch";
import type { paths } from "./schema.gen.js";

const [server, key, url] = process.argv.slice(2) as [string, string, string];
const client = createClient<paths>({ baseUrl: server, headers: { Authorization: `Bearer ${key}` } });

/** The header of a call that changes something: sent again with it, it is done once. */
const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

/** What was answered, or an error that says what was refused. */
function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const group = must(await client.PUT("/api/scraper/group", {
  params: { header: once() },
  body: { name: "of typescript" },
}));
const scraper = must(await client.PUT("/api/scraper", {
  params: { header: once() },
  body: {
    name: "of typescript",
    groupRef: group.id,
    type: "SINGLE_PRODUCT",
    sourceConfig: { url },
    itemsConfig: [{ name: "title", selector: "h1", kind: "TEXT" }],
  },
}));
const run = must(await client.POST("/api/scraper/{id}/run", {
  params: { path: { id: scraper.id }, header: once() },
}));
let state: string | undefined = "";
while (state !== "COMPLETED" && state !== "FAILED" && state !== "STOPPED") {
  await new Promise((done) => setTimeout(done, 200));
  const jobs = must(await client.GET("/api/scraper/load-history"));
  state = jobs.content.find((job) => job.id === run.jobId)?.state;
}
const rows = must(await client.GET("/api/scraper/data", { params: { query: { jobId: run.jobId } } }));
const lines = must(await client.GET("/api/scraper/data/export", {
  params: { query: { jobId: run.jobId, format: "jsonl" } },
  parseAs: "text",
})).trimEnd().split("\n");
console.log(state, rows.items.length, lines.length);
