"""Launches a run over the addresses of a file, watches it, and prints its rows: run.py LIST NAME"""

import http.client
import json
import os
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

SERVER, KEY = os.environ["SHOAL_SERVER"], os.environ["SHOAL_KEY"]


def call(method, path, body=None, **headers):
    """Makes a call and returns its answer, whose body is read by the caller."""
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(SERVER + path, data, method=method)
    request.add_header("Authorization", "Bearer " + KEY)
    request.add_header("Content-Type", "application/json")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        return urllib.request.urlopen(request, timeout=60)
    except urllib.error.HTTPError as refused:
        sys.exit(refused.read().decode())


def launch(urls, name):
    """Returns the id of a run over the addresses. The same name gives the same group again."""
    group = json.load(call("PUT", "/api/scraper/group", {"name": name}, Idempotency_Key=name))
    run = json.load(call("POST", "/api/scraper/url-list-run", {
        "groupId": group["id"], "name": name, "urls": urls,
        "itemsConfig": [{"name": "title", "selector": "h1", "kind": "TEXT"}]}))
    return run["jobId"]


def watch(job):
    """Follows a run to its end. A stream may break off before: the next one goes on behind the last frame."""
    state, last, breaks = "", "", 0
    while state not in ("SUCCESS", "FAILED", "CANCELLED"):
        if breaks:
            time.sleep(1)
        breaks += 1
        try:
            with call("GET", f"/api/scraper-job-status/{job}/stream", Last_Event_ID=last) as stream:
                for line in stream:
                    if line.startswith(b"id: "):
                        last, breaks = line[len(b"id: "):].strip().decode(), 1
                    if line.startswith(b"data: "):
                        frame = json.loads(line[len(b"data: "):])
                        state = frame["state"]
                        print(state, frame["totalRequests"], "of", frame["totalLinks"], file=sys.stderr)
        except (OSError, http.client.HTTPException) as broken:
            print(broken, file=sys.stderr)
        if breaks == 30:
            sys.exit("the stream breaks off again and again")
    if state != "SUCCESS":
        sys.exit(f"the run ended {state}")


def rows(job):
    """Yields every row of a run, page by page."""
    cursor = ""
    while cursor is not None:
        query = urllib.parse.urlencode({"jobId": job, "limit": 1000, "cursor": cursor})
        page = json.load(call("GET", "/api/scraper/data?" + query))
        yield from page["items"]
        cursor = page["nextCursor"]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        urls = file.read().split()
    job = launch(urls, sys.argv[2])
    watch(job)
    for row in rows(job):
        print(json.dumps(row, ensure_ascii=False))


main()
