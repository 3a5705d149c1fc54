// Does the main job by the client: main.ts SERVER KEY URL…
// It runs a list within its estimate, waits, reads the rows by pages, and exports them. It checks
// what was paid, reads why a call was refused, and deletes everything after a preview.
import createClient from "openapi-fetch";
import type { paths } from "./schema.gen.js";

const [server, key, url, ...others] = process.argv.slice(2) as
  [string, string, string, ...string[]];
const urls = [url, ...others];
const client = createClient<paths>({ baseUrl: server, headers: { Authorization: `Bearer ${key}` } });

/** The header of a call that changes something: sent again with it, it is done once. */
const once = () => ({ "Idempotency-Key": crypto.randomUUID() });

/** What was answered, or an error that says what was refused. */
function must<T>(answer: { data?: T; error?: unknown }): T {
  if (answer.data === undefined) throw new Error(JSON.stringify(answer.error));
  return answer.data;
}

const before = must(await client.GET("/api/wallet"));

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
const estimate = must(await client.POST("/api/scraper/{id}/estimate", {
  params: { path: { id: scraper.id }, query: { links: urls.length } },
}));
const run = must(await client.POST("/api/scraper/url-list-run", {
  params: { header: once() },
  body: {
    groupId: group.id,
    name: "of typescript, list",
    templateScraperId: scraper.id,
    urls,
    maxChargeMicros: estimate.maxMicros,
  },
}));
let state: string | undefined = "";
while (state !== "COMPLETED" && state !== "FAILED" && state !== "STOPPED") {
  await new Promise((done) => setTimeout(done, 200));
  const jobs = must(await client.GET("/api/scraper/load-history"));
  state = jobs.content.find((job) => job.id === run.jobId)?.state;
}

const pages: number[] = []; // the rows of each
let at: { jobId: string; limit: number; cursor?: string } = { jobId: run.jobId, limit: 5 };
for (;;) {
  const rows = must(await client.GET("/api/scraper/data", { params: { query: at } }));
  pages.push(rows.items.length);
  if (rows.nextCursor === null) break;
  at = { ...at, cursor: rows.nextCursor };
}
const lines = must(await client.GET("/api/scraper/data/export", {
  params: { query: { jobId: run.jobId, format: "jsonl" } },
  parseAs: "text",
})).trimEnd().split("\n");

const price = must(await client.GET("/api/wallet/prices"))
  .find((one) => one.rowKey === "tier:plain")!.sellingPriceMicros;
const after = must(await client.GET("/api/wallet"));
const paid = before.balanceMicros - after.balanceMicros
  + price * (before.freeRequestsRemaining - after.freeRequestsRemaining);

const { error: problem } = await client.PUT("/api/scraper/group", {
  params: { header: once() },
  body: { name: "" },
});
if (!problem) throw new Error("a group without a name was made");
const preview = must(await client.POST("/api/scraper/group/{id}/preview-delete", {
  params: { path: { id: group.id }, query: { withData: true } },
}));
const { error } = await client.DELETE("/api/scraper/group/{id}", {
  params: {
    path: { id: group.id },
    query: { withData: true, token: preview.token },
    header: once(),
  },
});
if (error) throw new Error(error.detail);
console.log(state, estimate.pages, ...pages, lines.length, paid / price, problem.code,
  problem.errors[0]?.field, preview.previewSummary.cascadeCounts.rows);
