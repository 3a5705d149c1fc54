"""Does the main job by the client: main.py SERVER KEY URL…

It makes a group and a scraper, launches a run, waits for it, reads its rows, and exports them."""

import sys
import time
import uuid

from shoal_client import client as shoal
from shoal_client import config, schemas

server, key, url = sys.argv[1:]
shoal.client.configure(config=config.Config(base_url=server,
                                            headers={"Authorization": f"Bearer {key}"}))


def once():
    """Headers of a call that changes something: sent again with them, it is done once."""
    return {"Idempotency-Key": str(uuid.uuid4())}


group = shoal.svc_put_group(data=schemas.GroupInput(name="of python"), headers=once())
scraper = shoal.svc_create_scraper(headers=once(), data=schemas.ScraperInput(
    name="of python", group_ref=group.id, type="SINGLE_PRODUCT",
    source_config=schemas.SourceConfigInput(url=url),
    items_config=[schemas.FieldInput(name="title", selector="h1", kind="TEXT")]))
run = shoal.svc_run_scraper_by_post(id=scraper.id, headers=once())
state = ""
while state not in ("COMPLETED", "FAILED", "STOPPED"):
    time.sleep(0.2)
    jobs = shoal.svc_list_scraper_jobs()
    state = next(job.state for job in jobs.content if job.id == run.job_id)
rows = shoal.svc_get_data(job_id=run.job_id)
exported = shoal.client.request("GET", "/api/scraper/data/export", response_map={200: str},
                                query={"jobId": run.job_id, "format": "csv"})
lines = exported.splitlines()[1:]  # behind the names of the columns
print(state, len(rows.items), len(lines))
