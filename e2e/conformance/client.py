# Does an agent's jobs by the protocol's official client for Python, over HTTP and by the command, in
# the versions of the protocol with sessions and without. Its arguments are a server, a key, the
# command, and a page of a shop.
import asyncio
import sys

import httpx2
import mcp
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client

server, key, shoal, page = sys.argv[1:]
FEW = 20_000  # micros


def transport(kind):
    if kind == "http":
        http = httpx2.AsyncClient(headers={"Authorization": "Bearer " + key}, timeout=70)
        return streamable_http_client(server + "/mcp", http_client=http)
    return stdio_client(mcp.StdioServerParameters(
        command=shoal, args=["mcp", "--server", server], env={"SHOAL_KEY": key}))


async def work(kind, version, says):
    asked = []

    async def elicit(_, params):
        asked.append(params.message)
        return mcp.types.ElicitResult(action=says, content={})

    async with mcp.Client(transport(kind), mode=version,
                          elicitation_callback=elicit if says else None) as client:
        async def call(name, /, **args):
            return (await client.call_tool(name, args)).structured_content

        tools, cursor = [], None
        while True:
            part = await client.list_tools(cursor=cursor)
            tools += [tool.name for tool in part.tools]
            cursor = part.next_cursor
            if not cursor:
                break
        for name in ("svc_preview_from_url", "svc_get_data", "svc_delete_group"):
            assert name in tools, name
        assert len((await client.list_prompts()).prompts) == 4

        look = {"url": page, "fields": ["title"]}
        refused = await call("svc_preview_from_url", **look)
        assert refused["error"]["code"] == "invalid_request", refused
        found = await call("svc_preview_from_url", **look, maxChargeMicros=FEW)
        assert len(asked) == (1 if says else 0), asked
        if says == "decline":
            assert found["error"]["code"] == "declined", found
            return
        title = found["result"]["fields"]["title"]
        assert title["type"] == "scraped" and found["cost"]["jobId"], found

        group = (await call("svc_put_group", name=f"{kind} {version} {says}",
                            dataTable="official"))["result"]["id"]
        run = (await call("svc_run_scraper_url_list", groupId=group, name="list", urls=[page],
                          itemsConfig=[{"name": "title", "selector": "h1", "kind": "TEXT"}],
                          maxChargeMicros=FEW))["result"]["jobId"]
        state = {"unfinished": True}
        while state.get("unfinished"):
            state = await call("svc_stream_scraper_job", id=run)
        rows = await call("svc_get_data", jobId=run)
        assert rows["result"]["items"][0]["title"]["content"] == title["content"], rows

        seen = await call("svc_preview_delete_group", id=group, withData=True)
        gone = await call("svc_delete_group", id=group, withData=True,
                          token=seen["result"]["token"])
        assert "error" not in gone, gone


async def main():
    for kind in ("http", "stdio"):
        for version in ("legacy", "2026-07-28"):
            for says in (None, "decline", "accept"):
                await work(kind, version, says)
                print(kind, version, says)
    print("DONE")


asyncio.run(main())
