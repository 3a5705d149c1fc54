// Does an agent's jobs by the protocol's official client for TypeScript, over HTTP and by the
// command. Its arguments are a server, a key, the command, and a page of a shop.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [server, key, shoal, page] = process.argv.slice(2);

const transports = {
  http: () => new StreamableHTTPClientTransport(new URL(server + "/mcp"),
    { requestInit: { headers: { Authorization: `Bearer ${key}` } } }),
  stdio: () => new StdioClientTransport({ command: shoal, args: ["mcp", "--server", server],
    env: { SHOAL_KEY: key } }),
};

for (const [kind, transport] of Object.entries(transports)) {
  for (const says of ["nothing", "decline", "accept"]) {
    const asked = [];
    const client = new Client({ name: "official", version: "1" },
      { capabilities: says === "nothing" ? {} : { elicitation: {} } });
    if (says !== "nothing") {
      client.setRequestHandler(ElicitRequestSchema, (request) => {
        asked.push(request.params.message);
        return { action: says, content: {} };
      });
    }
    await client.connect(transport());
    const call = async (name, args) => (await client.callTool({ name, arguments: args }))
      .structuredContent;

    const tools = [];
    for (let cursor; ; ) {
      const part = await client.listTools({ cursor });
      tools.push(...part.tools.map((tool) => tool.name));
      cursor = part.nextCursor;
      if (!cursor) {
        break;
      }
    }
    for (const name of ["svc_preview_from_url", "svc_get_data", "svc_delete_group"]) {
      assert.ok(tools.includes(name), name);
    }
    assert.equal((await client.listPrompts()).prompts.length, 4);

    const look = { url: page, fields: ["title"] };
    assert.equal((await call("svc_preview_from_url", look)).error.code, "invalid_request");
    const found = await call("svc_preview_from_url", { ...look, maxChargeMicros: 20_000 });
    assert.equal(asked.length, says === "nothing" ? 0 : 1);
    if (says === "decline") {
      assert.equal(found.error.code, "declined");
      await client.close();
      continue;
    }
    assert.equal(found.result.fields.title.type, "scraped");
    assert.ok(found.cost.jobId);

    const group = await call("svc_put_group", { name: `${kind} ${says}`, dataTable: "official" });
    const run = await call("svc_run_scraper_url_list", { groupId: group.result.id, name: "list",
      urls: [page], itemsConfig: [{ name: "title", selector: "h1", kind: "TEXT" }],
      maxChargeMicros: 20_000 });
    let state = { unfinished: true };
    while (state.unfinished) {
      state = await call("svc_stream_scraper_job", { id: run.result.jobId });
    }
    const rows = await call("svc_get_data", { jobId: run.result.jobId });
    assert.equal(rows.result.items[0].title.content, found.result.fields.title.content);
    const read = await client.readResource({ uri: `shoal://jobs/${run.result.jobId}` });
    assert.equal(JSON.parse(read.contents[0].text).result.totalRequests, 1);

    const seen = await call("svc_preview_delete_group", { id: group.result.id, withData: true });
    const gone = await call("svc_delete_group", { id: group.result.id, withData: true,
      token: seen.result.token });
    assert.equal(gone.error, undefined);
    await client.close();
    console.log(kind, says);
  }
}
console.log("DONE");
