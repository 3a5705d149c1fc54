// The API, as the portal calls it. No rule of the product is here: what is refused is told.
import type { Problem, ProblemItem, Scraper, ScraperCursorPage } from "./schema.gen";
import { begin, end } from "./sent";
import { pause } from "./show";
import { texts } from "./texts";
import { sentence, told } from "./words";

/** A refusal, or that nobody answers. */
export class Refused extends Error {
  constructor(readonly code: string, detail: string, readonly correlationId = "",
    readonly retryAfter = 0, readonly items: ProblemItem[] = [], readonly status = 0) {
    super(detail);
  }

  /** Whether nothing has come of the call: then it may still come of it, or may have. */
  get unknown(): boolean {
    return this.status < 400 || this.status >= 500 || this.code === "idempotency_in_flight";
  }

  /** What to do about it. */
  get todo(): string {
    if (this.retryAfter > 0) {
      return texts.wait(pause(this.retryAfter));
    }
    return texts.todo[this.code] ?? texts.todoElse;
  }
}

/** What stands in the query of an address. */
export type Query = Record<string, string | number | boolean | undefined>;

/** An address of the API with what stands in its query; undefined is left out. */
export function apiAddress(path: string, query: Query = {}): string {
  const said = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) {
      said.set(name, String(value));
    }
  }
  const text = said.toString();
  return path + (text && "?" + text);
}

/** Names as the API lists them, as in csv. */
export const listNames = (names: string[]) => names.map((name) =>
  /[",]|^\s|\s$/.test(name) ? `"${name.replaceAll('"', '""')}"` : name).join(",");

/** The names of such a list. Spaces around them do not count, unless they stand in quotes. */
export const readNames = (list: string) =>
  [...list.matchAll(/\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]*)(?:,|$)/g)].map(([, exact, plain]) =>
    exact?.replaceAll('""', '"') ?? plain!.trim()).filter(Boolean);

/** A key under which a call is done once, however often it is sent. */
export const newKey = () => crypto.randomUUID();

/** Something that is done once, however often it is sent. Its key stays while the same is said,
 * until it is refused: the service would answer the same refusal again. */
export class Once {
  private said = "";
  private key = "";

  async send<T>(said: unknown, what: (key: string) => Promise<T>): Promise<T> {
    const text = JSON.stringify(said);
    if (this.said !== text) {
      this.said = text;
      this.key = newKey();
    }
    try {
      return await what(this.key);
    } catch (e) {
      if (e instanceof Refused && !e.unknown) {
        this.renew();
      }
      throw e;
    }
  }

  /** What is said next is done anew. */
  renew(): void { this.said = ""; }
}

const queuedWithin = 600_000; // milliseconds in which a run is queued once it has its id

/** The time within which a run was queued. Its id begins with the second in which it was made. */
export function queuedAbout(id: string): { from: string; to: string } {
  const made = (parseInt(id.slice(0, 8), 16) || 0) * 1_000 || Date.now(); // no run has another id
  return { from: new Date(made - queuedWithin).toISOString(),
    to: new Date(made + queuedWithin).toISOString() };
}

interface Options {
  query?: Query;
  body?: unknown;
  type?: string; // of the body, where it is none of JSON
  key?: string;
  signal?: AbortSignal;
  exact?: boolean; // numbers that would be rounded are shown as they were written
  soFar?: (answer: unknown) => void; // takes what there is before all is (202), and waits on
}

/** Calls the API. Who has no session any more is led to sign in, and back. */
export async function call<T>(method: string, path: string, options: Options = {}): Promise<T> {
  const headers: Record<string, string> = {};
  const said = typeof options.body === "string" && options.type ? options.body
    : options.body === undefined ? undefined : JSON.stringify(options.body);
  if (said !== undefined || options.type) {
    headers["Content-Type"] = options.type ?? "application/json";
  }
  const to = apiAddress(path, options.query);
  const what = [method, to, said].join(" ");
  if (options.key) {
    headers["Idempotency-Key"] = begin(what, options.key);
  }
  let answer: Response;
  try {
    answer = await fetch(to, { method, headers, body: said, signal: options.signal });
  } catch (error) {
    if (options.signal?.aborted) {
      throw error;
    }
    throw new Refused("network", texts.network);
  }
  if (answer.status === 401) {
    signIn();
  }
  if (!answer.ok) {
    const why = await refusal(answer);
    if (options.key && !why.unknown) {
      end(what);
    }
    throw why;
  }
  const text = await answer.text(); // some that succeed say nothing
  const value = text === "" ? undefined : JSON.parse(text, options.exact ? exact : undefined);
  if (answer.status === 202 && options.soFar) {
    options.soFar(value);
    return call(method, path, options);
  }
  if (options.key) {
    end(what);
  }
  return value as T;
}

// What newer browsers have of JSON, and its types here have not.
const raw = (JSON as { rawJSON?: (text: string) => unknown }).rawJSON;

/** Whether a number has more digits than a number of a script may keep. */
export const rounds = (said: string) =>
  said.replace(/e.*|\D/gi, "").replace(/^0+/, "").length > 15;

/** Keeps a number as it was written where it would be rounded. */
function exact(_name: string, value: unknown, context?: { source?: string }): unknown {
  const said = context?.source;
  return raw && typeof value === "number" && said && rounds(said) ? raw(said) : value;
}

const mostOfPage = 1_000; // scrapers that one call answers

/** The customer's scrapers, newest first: all, or at least as many as are wanted. */
export async function readScrapers(signal: AbortSignal, most = Infinity): Promise<Scraper[]> {
  const all: Scraper[] = [];
  let cursor: string | undefined;
  do {
    const page: ScraperCursorPage = await call("GET", "/api/scraper/list",
      { query: { cursor, limit: mostOfPage }, signal });
    all.push(...page.items);
    cursor = page.nextCursor ?? undefined;
  } while (cursor && all.length < most);
  return all;
}

/** What an answer refuses. */
export async function refusal(answer: Pick<Response, "json" | "headers">): Promise<Refused> {
  const retryAfter = Number(answer.headers.get("Retry-After")) || 0;
  try {
    const problem = await answer.json() as Problem;
    const items = problem.errors.map((item) => told(item));
    return new Refused(problem.code, items.join(" ") || sentence(problem.detail),
      problem.correlationId, retryAfter, problem.errors, problem.status);
  } catch {
    return new Refused("network", texts.network, "", retryAfter);
  }
}

/** Leads to the sign-in page, and back to where the page is. */
export function signIn(): void {
  const next = new URLSearchParams({ next: location.pathname + location.search });
  location.assign("/sign-in?" + next);
}
