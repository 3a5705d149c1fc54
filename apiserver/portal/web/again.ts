// Another run of a scraper that there is.
import type { RunEstimate, Scraper } from "./schema.gen";
import { call, newKey } from "./api";
import { draft } from "./draft";
import { address, go, stays } from "./route";

/** Prepares the launch, asked for at a place of the portal, and leads to it. */
export async function prepareAgain(scraper: Scraper, from: string): Promise<void> {
  const here = stays();
  const estimate = await call<RunEstimate>("POST", `/api/scraper/${scraper.id}/estimate`);
  if (here()) {
    draft.value = { text: "", addresses: [], group: scraper.groupRef, name: scraper.name, scraper,
      estimate, again: from, saveKey: newKey(), launchKey: newKey() };
    go(address("/launch"));
  }
}
