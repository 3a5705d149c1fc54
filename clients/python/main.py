"""Does the main job by the client: main.py SERVER KEY URL…

It runs a list within its estimate, waits, reads the rows by pages, and exports them. It checks what
was paid, reads why a call was refused, and deletes everything after a preview."""

import sys
import time
import uuid

from clientele.api import APIException

from shoal_client import client as shoal
from shoal_client import config, schemas

server, key, *urls = sys.argv[1:]
shoal.client.configure(config=config.Config(base_url=server,
                                            headers={"Authorization": f"Bearer {key}"}))


def once():
    """Headers of a call that changes something: sent again with them, it is done once."""
    return {"Idempotency-Key": str(uuid.uuid4())}


before = shoal.svc_get_wallet()

group = shoal.svc_put_group(data=schemas.GroupInput(name="of python"), headers=once())
scraper = shoal.svc_create_scraper(headers=once(), data=schemas.ScraperInput(
    name="of python", group_ref=group.id, type="SINGLE_PRODUCT",
    source_config=schemas.SourceConfigInput(url=urls[0]),
    items_config=[schemas.FieldInput(name="title", selector="h1", kind="TEXT")]))
estimate = shoal.svc_estimate_scraper(id=scraper.id, links=len(urls))
run = shoal.svc_run_scraper_url_list(headers=once(), data=schemas.ListRunInput(
    group_id=group.id, name="of python, list", template_scraper_id=scraper.id, urls=urls,
    max_charge_micros=estimate.max_micros))
state = ""
while state not in ("COMPLETED", "FAILED", "STOPPED"):
    time.sleep(0.2)
    jobs = shoal.svc_list_scraper_jobs()
    state = next(job.state for job in jobs.content if job.id == run.job_id)

pages = []  # the rows of each
cursor = None
while not pages or cursor:
    rows = shoal.svc_get_data(job_id=run.job_id, limit=5, cursor=cursor)
    pages.append(len(rows.items))
    cursor = rows.next_cursor
exported = shoal.client.request("GET", "/api/scraper/data/export", response_map={200: str},
                                query={"jobId": run.job_id, "format": "csv"})
lines = exported.splitlines()[1:]  # behind the names of the columns

price = next(one.selling_price_micros for one in shoal.svc_list_prices()
             if one.row_key == "tier:plain")
after = shoal.svc_get_wallet()
paid = (before.balance_micros - after.balance_micros
        + price * (before.free_requests_remaining - after.free_requests_remaining))

try:
    shoal.svc_put_group(data=schemas.GroupInput(name=""), headers=once())
    sys.exit("a group without a name was made")
except APIException as refused:
    problem = schemas.Problem.model_validate(refused.response.json())
preview = shoal.svc_preview_delete_group(id=group.id, with_data=True)
shoal.svc_delete_group(id=group.id, with_data=True, token=preview.token, headers=once())
print(state, estimate.pages, *pages, len(lines), paid // price, problem.code,
      problem.errors[0].field, preview.preview_summary.cascade_counts["rows"])
