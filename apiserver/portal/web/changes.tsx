// What a run has added, removed or changed of the rows of a run before it.
import type { Job, JobPage, Row, RowChange, RunDiff } from "./schema.gen";
import { call, queuedAbout } from "./api";
import { Cursor, Table } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { address, go, place } from "./route";
import { asText, count, Scraped, when } from "./show";
import { texts } from "./texts.changes";

const most = { runs: 200, rows: 100, fields: 6 }; // looked through, of a page, of a row

/** The page of a place. */
export function page(parts: string[]) {
  return <Changes scraper={parts[1]!} job={parts[2]!} key={parts[2]} />;
}

/** A run beside one before it. Which one stands in the address. */
function Changes(props: { scraper: string; job: string }) {
  const { scraper, job } = props;
  const read = useLoaded(async (signal) => {
    const upto = await call<JobPage>("GET", "/api/scraper/load-history", { query: {
      filters: JSON.stringify({ scraperId: scraper }), to: queuedAbout(job).to, size: most.runs },
      signal });
    const at = upto.content.findIndex((run) => run.id === job);
    return at < 0 ? undefined : upto.content.slice(at + 1).filter((run) => run.duration !== null);
  }, [job, resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.changesTitle}</h1>
    <p><a href={address(`/runs/${scraper}/${job}`)}>{texts.runTitle}</a></p>
    <Shown of={read}>{(before) => !before ? <p>{texts.runMissing}</p>
      : before.length === 0 ? <p>{texts.changesNone}</p>
      : <Since before={before} job={job} />}</Shown>
  </>;
}

function Since(props: { before: Job[]; job: string }) {
  const { before, job } = props;
  const asked = place.value.query.get("with");
  const from = before.find((run) => run.id === asked)
    ?? before.find((run) => run.state === "COMPLETED") ?? before[0]!;
  return <>
    <label for="with">{texts.changesSince}</label>
    <select id="with" value={from.id} onChange={(e) =>
      go(address(place.value.path, { with: e.currentTarget.value }), true)}>
      {before.map((run) => <option key={run.id} value={run.id}>
        {when(run.started ?? run.queued)}, {texts.states[run.state] ?? run.state}</option>)}
    </select>
    <Differences from={from.id} to={job} key={from.id} />
  </>;
}

/** The rows that differ, the first ones and those that are asked for. */
function Differences(props: { from: string; to: string }) {
  const { from, to } = props;
  return <Cursor<RowChange, RunDiff> reasons={[from, to]} ask={(at, signal) => call("GET",
    "/api/scraper/data/diff", { query: { from, to, limit: most.rows, ...at }, signal, exact: true })}>
    {(items, page) => <>
      {page.summary && <p role="status">{texts.changesOf(count(page.summary.added),
        count(page.summary.removed), count(page.summary.changed),
        count(page.summary.unchanged))}</p>}
      <p class="hint">{page.key.length === 0 ? texts.changesByPlace : <>{texts.changesBy}{" "}
        <Scraped value={page.key.join(", ")} /></>}</p>
      <Table caption={texts.changesTitle} none={texts.changesSame}
        items={items} columns={[
          { name: texts.change, of: (c) => texts.changeKinds[c.change] ?? c.change },
          { name: texts.row, of: (c) => <Scraped most={60} value={nameOf(c, page.key)} /> },
          { name: texts.values, wide: true, of: (c) => <Values of={c} /> }]} />
    </>}</Cursor>;
}

/** The members of a row that pages gave it. Those of the server begin with _. */
const given = (row: Row) => Object.keys(row).filter((name) => !name.startsWith("_"));

/** What a row is called: by what tells it from others, else by its first member. */
function nameOf(c: RowChange, key: string[]): unknown {
  const row = c.after ?? c.before ?? {};
  const by = key.length > 0 ? key : given(row).slice(0, 1);
  return by.length === 1 ? row[by[0]!] : by.map((name) => asText(row[name])).join(", ");
}

/** What stands in a row: where it has changed what differs, with what was there. */
function Values(props: { of: RowChange }) {
  const { before, after, change, changed } = props.of;
  const row = after ?? before ?? {};
  const names = change === "CHANGED" ? changed : given(row);
  return <ul class="fields">{names.slice(0, most.fields).map((name) => <li key={name}>
    <strong><Scraped value={name} most={60} /></strong>{" "}
    <Scraped value={row[name] ?? "–"} most={100} />
    {change === "CHANGED" && <>{" "}<span class="hint">{texts.was}{" "}
      <Scraped value={before?.[name] ?? "–"} most={100} /></span></>}
  </li>)}{names.length > most.fields && <li>…</li>}</ul>;
}
