// What a person is about to launch. It lives as long as the browser's tab, over reloads, too.
import { effect, signal } from "@preact/signals";
import type { RunEstimate, Scraper, ScraperProposal } from "./schema.gen";
import { texts } from "./texts";

/** What is about to be launched. */
export interface Draft {
  text: string; // as it was entered
  addresses: string[];
  repeats?: number; // lines that repeat one of these
  group?: string; // that stores the rows
  newGroup?: string; // its name, until it is made
  name: string; // of the scraper
  proposals?: ScraperProposal[];
  scraper?: Scraper; // that was saved
  estimate?: RunEstimate;
  rest?: boolean; // whether only addresses that were never charged are read again
  again?: string; // the place where a scraper that there is was to run again
  cap?: string; // as it was entered
  chosen?: number; // the proposal that was saved, or was to be
  following?: boolean; // whether to read the pages that follow, until that is saved
  // Keys under which the calls are done once.
  saveKey: string;
  launchKey: string;
}

const place = "shoal-draft";

function read(): Draft | undefined {
  try {
    const was = JSON.parse(sessionStorage.getItem(place) ?? "null") as Draft | null;
    return was ? { ...was, addresses: readAddresses(was.text).addresses } : undefined;
  } catch {
    return undefined;
  }
}

/** The draft of this tab. */
export const draft = signal<Draft | undefined>(read());

/** Changes a draft once an answer is there, unless there is another one meanwhile. */
export function change(of: Draft | undefined, to: Draft | undefined): void {
  if (draft.value === of) {
    draft.value = to;
  }
}

/** Whether a reload finds the draft again. */
export const kept = signal(true);

effect(() => {
  try {
    if (draft.value) {
      // its text has the addresses
      sessionStorage.setItem(place, JSON.stringify({ ...draft.value, addresses: undefined }));
    } else {
      sessionStorage.removeItem(place);
    }
    kept.value = true;
  } catch { // it is larger than what browsers keep
    sessionStorage.removeItem(place);
    kept.value = false;
  }
});

/** The addresses of a text, one a line, each once, and the first line that is none. */
export function readAddresses(text: string): { addresses: string[]; repeats: number;
  bad?: string; } {
  const addresses = new Set<string>();
  let lines = 0;
  for (const line of text.split(/[\r\n]+/)) {
    const said = line.trim();
    if (said === "" || said.startsWith("#")) {
      continue;
    }
    if (!/^https?:\/\/[^\s/]/i.test(said) || !URL.canParse(said)) {
      return { addresses: [...addresses], repeats: 0, bad: said };
    }
    addresses.add(said);
    lines++;
  }
  return { addresses: [...addresses], repeats: lines - addresses.size };
}

/** The list that a page belongs to: what is left of its address without any numbers. */
function listOf(address: string): string {
  const { origin, pathname, searchParams } = new URL(address);
  const path = pathname.replace(/\d+/g, "").replace(/(\/page)?\/*$/i, "");
  const rest = [...searchParams].filter(([, value]) => !/^\d+$/.test(value));
  return JSON.stringify([origin, path, rest]);
}

/** Whether the first address is a page of a list of which there are further ones. What follows it
 * would be read again for each of them. */
export const listsPages = (addresses: string[]) => addresses.length > 1
  && addresses.slice(1).some((one) => listOf(one) === listOf(addresses[0]!));

const launched = "shoal-launched";

/** Where the run is that this tab launched last, over reloads: one may come before its answer. */
export const lastRun = signal(sessionStorage.getItem(launched) ?? "");

effect(() => {
  try {
    sessionStorage.setItem(launched, lastRun.value);
  } catch { /* the tab has kept as much as it may */ }
});

/** How long the name of a scraper may be: the run of its list has a longer one, of 200 at most. */
export const mostName = 200 - texts.listOf("").length;

let named = 0; // when a name was made last, as far as this page knows
const lastNamed = "shoal-named"; // the same, as far as this tab knows

/** A name for the scraper of an address, which no other one has. */
export function newName(from: string): string {
  const before = Math.max(named, Number(sessionStorage.getItem(lastNamed)));
  named = Math.max(Date.now(), before + 1_000); // no two have the same second
  try {
    sessionStorage.setItem(lastNamed, String(named));
  } catch { /* the tab has kept as much as it may */ }
  const now = new Date(named);
  const two = (n: number) => String(n).padStart(2, "0");
  const at = ` ${now.getFullYear()}-${two(now.getMonth() + 1)}-`
    + `${two(now.getDate())} ${two(now.getHours())}:${two(now.getMinutes())}:`
    + two(now.getSeconds());
  return new URL(from).host.slice(0, mostName - at.length) + at;
}
