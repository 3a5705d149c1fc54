// What both of Crawlee's jobs are given, by its guides on scaling and on request storage: a RequestList, which for a list
// known beforehand is cheaper than the queue; nothing written to disk; the concurrency from the start instead of the
// autoscaler's slow climb; no session pool, no retries; got's kept connections, and not a browser's headers made up for
// each request.

import { Agent } from "node:http";
import { Configuration, RequestList, log } from "@crawlee/core";
import { addresses, concurrency } from "./job.mjs";

log.setLevel(log.LEVELS.WARNING);

const agent = { http: new Agent({ keepAlive: true, maxSockets: concurrency }) };

export const configuration = new Configuration({ persistStorage: false, systemInfoV2: true });

export const options = {
  requestList: await RequestList.open({ sources: addresses.map((url) => ({ url })), keepDuplicateUrls: true }),
  minConcurrency: concurrency,
  maxConcurrency: concurrency,
  maxRequestRetries: 0,
  useSessionPool: false,
  preNavigationHooks: [
    (_, got) => {
      got.agent = agent;
      got.useHeaderGenerator = false;
    },
  ],
};
