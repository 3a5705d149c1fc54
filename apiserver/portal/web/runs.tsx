// Runs: the history, and one of them while it is under way.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { byStatus, failures, type Group, type Job, type JobCursorPage, type JobPage, type LinkError,
  type Scraper } from "./schema.gen";
import { missing, prepareAgain } from "./again";
import { call, newKey, queuedAbout, readScrapers, Refused } from "./api";
import { Cursor } from "./kit";
import { refused, resynced, Shown, Trouble, useLoaded } from "./load";
import { address, go, place } from "./route";
import { about, choices, count, duration, Fact, money, numbered, Scraped, when } from "./show";
import { progress } from "./store";
import { texts } from "./texts";

const names = { most: 1_000 }; // of scrapers that are asked for

type Names = Map<string, string>;

/** The names of scrapers, by their id; one without is shown by its id. */
export function useNames(): Names {
  const read = useLoaded(async (signal) => new Map((await readScrapers(signal, names.most))
    .map((s) => [s.id, s.name])), [resynced.value]);
  return read.value ?? new Map();
}

/** The names of some scrapers, asked for one by one: few need not read all there are. */
export function useNamesOf(ids: string[]): Names {
  const few = [...new Set(ids)].sort();
  const read = useLoaded(async (signal) => new Map(await Promise.all(few.map(async (id) => {
    const named = await call<Scraper>("GET", `/api/scraper/${id}`, { signal })
      .catch((e: unknown) => {
        if (e instanceof Refused) { // it is deleted, or not one's own
          return undefined;
        }
        throw e;
      });
    return [id, named?.name ?? id] as const;
  }))), [few.join(), resynced.value]);
  return read.value ?? new Map();
}

/** A run with what the stream has told of it since. */
function newest(job: Job): Job & { pagesPerSecond: number } {
  const told = progress.value.get(job.id);
  if (!told || told.totalRequests < job.totalRequests
    || isOver(job.state) && !isOver(told.state)) {
    return { ...job, pagesPerSecond: 0 };
  }
  const over = isOver(told.state);
  return { ...job, state: over ? told.state : job.state === "PENDING" && told.totalRequests === 0
    ? "PENDING" : "RUNNING",
  itemsQuantity: told.itemsQuantity, totalRequests: told.totalRequests,
  successLinks: told.successLinks, errorLinks: told.errorLinks, totalLinks: told.totalLinks,
  deliveredPages: told.deliveredPages, chargedMicros: told.chargedMicros,
  duration: told.duration ?? job.duration, stopReason: told.stopReason ?? job.stopReason,
  errorMessage: told.errorMessage ?? job.errorMessage, pagesPerSecond: told.pagesPerSecond };
}

const isOver = (state: string) => state !== "PENDING" && state !== "RUNNING";

function State(props: { state: string }) {
  return <span class={`state ${props.state.toLowerCase()}`}>
    {texts.states[props.state] ?? props.state}</span>;
}

const cost = (micros: number | null) => micros === null ? "–" : money(micros);

/** A table of runs. */
export function RunTable(props: { runs: Job[]; names: Names }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label={texts.runsCaption}>
    <table class="runs">
      <caption class="unseen">{texts.runsCaption}</caption>
      <thead><tr>
        <th scope="col">{texts.started}</th><th scope="col">{texts.state}</th>
        <th scope="col">{texts.scraper}</th><th scope="col" class="n">{texts.rows}</th>
        <th scope="col" class="n">{texts.delivered}</th><th scope="col" class="n">{texts.failed}</th>
        <th scope="col" class="n">{texts.cost}</th>
      </tr></thead>
      <tbody>{props.runs.map((one) => {
        const run = newest(one);
        return <tr key={run.id}>
          <td><a href={address(`/runs/${run.scraperId}/${run.id}`)}>
            {when(run.started ?? run.queued)}</a></td>
          <td><State state={run.state} />{run.quarantineReason && ` (${texts.held})`}</td>
          <td class="wide"><Scraped value={props.names.get(run.scraperId) ?? run.scraperId} most={60} /></td>
          <td class="n"><a href={address(`/rows/${run.groupId}`, { job: run.id })}>
            {count(run.itemsQuantity)}</a></td>
          <td class="n">{count(run.deliveredPages)}</td>
          <td class="n">{count(run.errorLinks)}</td>
          <td class="n">{cost(run.chargedMicros)}</td>
        </tr>;
      })}</tbody>
    </table>
  </div>;
}

const states = ["PENDING", "RUNNING", "COMPLETED", "FAILED", "STOPPED"];

/** Which runs the address asks for, as the API filters them; undefined: all. */
function filtersOf(query: URLSearchParams): string | undefined {
  const said = ["groupId", "scraperId", "state"].map((name) => [name, query.get(name)])
    .filter(([, value]) => value);
  return said.length > 0 ? JSON.stringify(Object.fromEntries(said)) : undefined;
}

/** Which runs are shown. What is chosen stands in the address. */
function Which(props: { names: Names }) {
  const groups = useLoaded((signal) => call<Group[]>("GET", "/api/scraper/group/list",
    { signal }), [resynced.value]);
  const query = place.value.query;
  const choose = (name: string, value: string) => {
    const next = new URLSearchParams(query);
    if (value) {
      next.set(name, value);
    } else {
      next.delete(name);
    }
    go(address("/runs", Object.fromEntries(next)), true);
  };
  const one = (name: string, label: string, any: string, options: [string, string][]) => {
    const chosen = query.get(name) ?? "";
    const all = chosen === "" || options.some(([value]) => value === chosen) ? options
      : [...options, [chosen, chosen] as [string, string]];
    return <div><label for={name}>{label}</label>
      <select id={name} value={chosen} onChange={(e) => choose(name, e.currentTarget.value)}>
        <option value="">{any}</option>
        {all.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
      </select></div>;
  };
  return <form class="filter choice" aria-label={texts.runsFilter}
    onSubmit={(event) => event.preventDefault()}>
    {one("state", texts.state, texts.anyState,
      states.map((state) => [state, texts.states[state] ?? state]))}
    {one("groupId", texts.group, texts.anyGroup,
      choices(groups.value ?? []))}
    {one("scraperId", texts.scraper, texts.anyScraper,
      choices([...props.names].map(([id, name]) => ({ id, name }))))}
  </form>;
}

const sizes = { page: 50 };

/** The history. */
export function Runs() {
  const known = useNames();
  const filters = filtersOf(place.value.query);
  const ask = async ({ cursor }: { cursor?: string }, signal?: AbortSignal):
  Promise<JobCursorPage> => {
    if (!filters) {
      return call("GET", "/api/scraper/load-history/all",
        { query: { limit: sizes.page, cursor }, signal });
    }
    const number = Number(cursor ?? 0); // those that are filtered come by pages
    const page = await call<JobPage>("GET", "/api/scraper/load-history",
      { query: { filters, page: number, size: sizes.page }, signal });
    const hasMore = number + 1 < page.totalPages;
    return { items: page.content, hasMore, nextCursor: hasMore ? String(number + 1) : null };
  };
  return <>
    <h1 tabIndex={-1}>{texts.runsTitle}</h1>
    <Which names={known} />
    <Cursor<Job, JobCursorPage> ask={ask} reasons={[filters, resynced.value]}>{(all) => all.length > 0
      // by pages one comes twice where there is another run meanwhile
      ? <RunTable runs={[...new Map(all.map((run) => [run.id, run])).values()]} names={known} />
      : filters ? <p role="status">{texts.runsNoneSo}</p>
      : <p>{texts.runsNone} <a href={address("/")}>{texts.startTitle}</a></p>}</Cursor>
  </>;
}

/** One run, of a scraper that may be gone. The API lists those of a scraper by when they came. */
export function Run(props: { scraper: string; job: string }) {
  const read = useLoaded(async (signal) => {
    const query = { filters: JSON.stringify({ scraperId: props.scraper }), withDeleted: true,
      ...queuedAbout(props.job), size: 200 };
    const [page, scraper] = await Promise.all([
      call<JobPage>("GET", "/api/scraper/load-history", { query, signal }),
      call<Scraper>("GET", `/api/scraper/${encodeURIComponent(props.scraper)}`, { signal })
        .catch((e: unknown) => {
          if (e instanceof Refused && e.code === "scraper_not_found") {
            return undefined;
          }
          throw e;
        })]);
    const job = page.content.find((one) => one.id === props.job);
    return job && { job, scraper };
  }, [props.job, resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.runTitle}</h1>
    <Shown of={read}>{(found) => found
      ? <OneRun job={newest(found.job)} scraper={found.scraper} />
      : <p>{texts.runMissing} <a href={address("/runs")}>{texts.allRuns}</a></p>}</Shown>
  </>;
}

function OneRun(props: { job: ReturnType<typeof newest>; scraper: Scraper | undefined }) {
  const { job, scraper } = props;
  const done = job.successLinks + job.errorLinks;
  const over = isOver(job.state);
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const act = async (what: () => Promise<void>) => {
    if (busy.value) {
      return;
    }
    busy.value = true;
    error.value = undefined;
    await what().catch((e: unknown) => { error.value = refused(e); });
    busy.value = false;
  };
  const change = (path: string) => act(async () => {
    await call("POST", path, { key: newKey() });
    resynced.value++;
  });
  const again = (scraper: Scraper, rest = 0) => act(() =>
    prepareAgain(scraper, `/runs/${job.scraperId}/${job.id}`, rest));
  const left = over && scraper ? missing(scraper, job) : 0;
  return <>
    <p class="lead">{scraper ? <a href={address(`/scrapers/${scraper.id}`)}>
      <Scraped value={scraper.name} /></a> : <Scraped value={job.scraperId} />}</p>
    <p role="status"><State state={job.state} />
      {job.stopReason && <span> {texts.stopReasons[job.stopReason] ?? job.stopReason}</span>}</p>
    {job.quarantineReason && <div class="note">
      <p><strong>{texts.heldTitle}</strong> <Scraped value={numbered(job.quarantineReason)}
        most={1_000} /></p>
      <p>{texts.heldHint}</p>
      <p><button type="button" class="second" aria-disabled={busy.value}
        onClick={() => void change(`/api/scraper-job-status/${job.id}/release`)}>{texts.release}</button></p>
    </div>}
    {job.errorMessage && <p class="trouble"><Scraped
      value={numbered(job.errorMessage)} most={500} /></p>}
    <label for="progress">{texts.progress}: {texts.linksOf(count(done), count(job.totalLinks))}
    </label>
    <progress id="progress" value={done} max={Math.max(1, job.totalLinks)} />
    <dl class="facts">
      <Fact name={texts.rows}>{count(job.itemsQuantity)}</Fact>
      <Fact name={texts.delivered}>{count(job.deliveredPages)}</Fact>
      <Fact name={texts.failed}>{count(job.errorLinks)}</Fact>
      {over ? <Fact name={texts.took}>{duration(job.duration)}</Fact>
        : <Fact name={texts.rate}>{about(job.pagesPerSecond)}</Fact>}
      <Fact name={over ? texts.cost : texts.costSoFar}>{cost(job.chargedMicros)}</Fact>
      <Fact name={texts.capOf}>
        {job.maxChargeMicros === null ? texts.noCap : money(job.maxChargeMicros)}</Fact>
      <Fact name={texts.started}>{when(job.started ?? job.queued)}</Fact>
    </dl>
    {error.value && <Trouble error={error.value} />}
    <p class="actions">
      {!over && <button type="button" class="danger" aria-disabled={busy.value}
        onClick={() => void change(`/api/scraper/${job.scraperId}/stop`)}>{texts.stop}</button>}
      <a class="button" href={address(`/rows/${job.groupId}`, { job: job.id })}>
        {texts.seeRows}</a>
      <a class="button" href={address(`/runs/${job.scraperId}/${job.id}/fields`)}>
        {texts.seeFields}</a>
      {over && <a class="button" href={address(`/runs/${job.scraperId}/${job.id}/changes`)}>
        {texts.seeChanges}</a>}
      {left > 0 && <button type="button" class="second" aria-disabled={busy.value}
        onClick={() => void again(scraper!, left)}>{texts.readMissing(count(left))}</button>}
      {over && scraper && scraper.type !== "FILE" && <button type="button" class="second"
        aria-disabled={busy.value} onClick={() => void again(scraper)}>{texts.runAgain}</button>}
    </p>
    <p role="status">{busy.value && (over ? texts.preparing : texts.stopping)}</p>
    <Failures job={job} over={over} />
  </>;
}

const errors = { first: 1_000, page: 10_000, most: 100_000, every: 3_000 };

/** Errors of a run by kind, each with its first one. */
interface Kinds { by: Map<string, { first: LinkError; n: number }>; read: number; cut: boolean }

const noKinds: Kinds = { by: new Map(), read: 0, cut: false };

/** Reads the errors of a run: all once it is over, the first ones before. */
async function readKinds(job: Job, over: boolean, signal: AbortSignal): Promise<Kinds> {
  const kinds: Kinds = { by: new Map(), read: 0, cut: false };
  const limit = over ? errors.page : errors.first;
  let after: string | undefined;
  do {
    const page = await call<LinkError[]>("GET",
      `/api/scraper/load-history/group/${job.groupId}/job/${job.id}/errors`,
      { query: { limit, after }, signal });
    for (const one of page) {
      const kind = `${one.code} ${one.status ?? ""}`;
      const known = kinds.by.get(kind);
      kinds.by.set(kind, { first: known?.first ?? one, n: (known?.n ?? 0) + 1 });
    }
    kinds.read += page.length;
    after = page.length === limit ? page.at(-1)!.place : undefined;
    kinds.cut = after !== undefined;
  } while (after && over && kinds.read < errors.most);
  return kinds;
}

/** Errors of a run by kind. They are read again at most every 3 s while there come more. */
function Failures(props: { job: Job; over: boolean }) {
  const { job, over } = props;
  const asked = useSignal(job.errorLinks);
  useEffect(() => {
    if (asked.value === job.errorLinks) {
      return;
    }
    const timer = setTimeout(() => { asked.value = job.errorLinks; }, over ? 0 : errors.every);
    return () => clearTimeout(timer);
  }, [job.errorLinks === asked.value, asked.value, over]); // more may have come meanwhile
  const read = useLoaded(async (signal) => asked.value === 0 ? noKinds
    : readKinds(job, over, signal), [job.id, asked.value, over]);
  return <section>
    <h2>{texts.errorsTitle}</h2>
    <Shown of={read}>{(all) => all.read === 0 ? <p>{texts.errorsNone}</p> : <>
      {all.cut && <p class="hint">{texts.errorsFirst(count(all.read))}</p>}
      <FailureTable kinds={all.by} /></>}</Shown>
  </section>;
}

/** What to do about an error. An answer's status says more than its code. */
const adviceOn = ({ code, status }: LinkError) => code === "http_status" && status
  && (byStatus[status] ?? byStatus[Math.floor(status / 100)]) || failures[code]?.advice;

function FailureTable(props: { kinds: Kinds["by"] }) {
  return <div class="scroll" tabIndex={0} role="region" aria-label={texts.errorsCaption}><table>
    <caption class="unseen">{texts.errorsCaption}</caption>
    <thead><tr><th scope="col">{texts.errorKind}</th>
      <th scope="col" class="n">{texts.errorCount}</th>
      <th scope="col">{texts.errorExample}</th></tr></thead>
    <tbody>{[...props.kinds].sort((a, b) => b[1].n - a[1].n).map(([kind, { first, n }]) => {
      return <tr key={kind}>
        <td class="wide">{failures[first.code]?.title ?? first.code}
          {first.status ? ` (${first.status})` : ""}
          <p class="hint">{adviceOn(first) ?? <Scraped value={first.error} />}</p></td>
        <td class="n">{count(n)}</td>
        <td><Scraped value={first.url} most={100} /></td>
      </tr>;
    })}</tbody></table></div>;
}
