"""Does the main job by a generated client: main.py SERVER KEY URL…"""

import sys
import time
import uuid

from shoal_client import AuthenticatedClient
from shoal_client.api.data import svc_get_data
from shoal_client.api.groups import svc_put_group
from shoal_client.api.runs import svc_run_scraper_by_post
from shoal_client.api.scraper_jobs import svc_list_scraper_jobs
from shoal_client.api.scrapers import svc_create_scraper
from shoal_client.models import FieldInput, FieldInputKind, GroupInput, ScraperInput
from shoal_client.models import ScraperInputType, SourceConfigInput

server, key, url = sys.argv[1:]
client = AuthenticatedClient(base_url=server, token=key, raise_on_unexpected_status=True)
group = svc_put_group.sync(client=client, body=GroupInput(name="of python"),
                           idempotency_key=str(uuid.uuid4()))
scraper = svc_create_scraper.sync(client=client, idempotency_key=str(uuid.uuid4()), body=ScraperInput(
    name="of python", group_ref=group.id, type_=ScraperInputType.SINGLE_PRODUCT,
    source_config=SourceConfigInput(url=url),
    items_config=[FieldInput(name="title", selector="h1", kind=FieldInputKind.TEXT)]))
run = svc_run_scraper_by_post.sync(scraper.id, client=client, idempotency_key=str(uuid.uuid4()))
state = ""
while state not in ("COMPLETED", "FAILED", "STOPPED"):
    time.sleep(0.2)
    jobs = svc_list_scraper_jobs.sync(client=client)
    state = next(job.state for job in jobs.content if job.id == run.job_id)
rows = svc_get_data.sync(client=client, job_id=run.job_id)
print(state, len(rows.items), rows.items[0]["title"])
