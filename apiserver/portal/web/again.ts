// Another run of a scraper that there is.
import type { Job, RunEstimate, Scraper } from "./schema.gen";
import { call, newKey } from "./api";
import { draft } from "./draft";
import { address, go, stays } from "./route";

/** Whether a scraper reads a list: then it has no address of its own to start from. */
export function isList(of: Scraper): boolean {
  const { url, curl, queries } = of.sourceConfig;
  return of.type !== "FILE" && !url && !curl && !queries?.length;
}

/** How many addresses of a run's list were not delivered, and may be read without the others. */
export const missing = (of: Scraper, run: Job) =>
  isList(of) ? Math.max(0, run.totalLinks - run.successLinks) : 0;

/** Prepares the launch, asked for at a place of the portal, and leads to it. rest: of so many
 * addresses of its list that were never charged. */
export async function prepareAgain(scraper: Scraper, from: string, rest = 0): Promise<void> {
  const here = stays();
  const estimate = await call<RunEstimate>("POST", `/api/scraper/${scraper.id}/estimate`,
    { query: { links: rest || undefined } });
  if (here()) {
    draft.value = { text: "", addresses: [], group: scraper.groupRef, name: scraper.name, scraper,
      estimate, again: from, rest: rest > 0, saveKey: newKey(), launchKey: newKey() };
    go(address("/launch"));
  }
}
