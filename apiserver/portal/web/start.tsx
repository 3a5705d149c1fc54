// From addresses to a run: three pages, a click each.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { JobCursorPage, LaunchedListRun, LaunchedRun, ListRunInput, Pagination,
  RunEstimate, Scraper, ScraperProposal, URLPreviewInput } from "./schema.gen";
import { call, newKey, Refused } from "./api";
import { change, draft, type Draft, kept, lastRun, listsPages, mostName, newName,
  readAddresses } from "./draft";
import { entriesKept, useEntry } from "./entries";
import { isList } from "./again";
import { ChooseGroup, groupFor, groupOf } from "./group";
import { paste } from "./kit";
import { refused, resynced, Trouble, useLoaded } from "./load";
import { address, go, stays } from "./route";
import { RunTable, useNamesOf } from "./runs";
import { count, entered, Fact, money, parseMoney, Scraped } from "./show";
import { texts } from "./texts";
import { building } from "./texts.builder";

/** Reads the first address and shows what its page has. */
async function propose(begun: Draft): Promise<void> {
  const { name, addresses } = begun;
  const here = stays();
  const now = draft.value = begun;
  const group = await groupFor();
  const body: URLPreviewInput = { name, groupId: group, url: addresses[0]! };
  const proposals = await call<ScraperProposal[]>("POST", "/api/scraper-simple/url-based",
    { query: { useCache: true }, body });
  change(now, { ...now, group, proposals });
  if (here()) {
    go(address("/candidates"));
  }
}

/** Where a person enters addresses. */
export function Start() {
  const text = useEntry("addresses", draft.value?.text ?? "");
  const problem = useSignal<string | { bad: string } | undefined>(undefined);
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const runs = useLoaded((signal) => call<JobCursorPage>("GET", "/api/scraper/load-history/all",
    { query: { limit: 5 }, signal }), [resynced.value]);
  const known = useNamesOf((runs.value?.items ?? []).map((run) => run.scraperId));
  const show = async (event?: Event) => {
    event?.preventDefault();
    if (busy.value) {
      return;
    }
    error.value = undefined;
    const picking = (event as SubmitEvent | undefined)?.submitter?.id === "build";
    const { addresses, bad, repeats } = readAddresses(text.value);
    problem.value = bad !== undefined ? { bad }
      : addresses.length === 0 ? texts.addressesNone : undefined;
    if (problem.value) {
      document.getElementById("addresses")?.focus();
      return;
    }
    const begun: Draft = { text: text.value, addresses, repeats, name: newName(addresses[0]!),
      saveKey: newKey(), launchKey: newKey() };
    if (picking) {
      draft.value = begun;
      go(address("/build", { url: addresses[0]! }));
      return;
    }
    busy.value = true;
    await propose(begun).catch((e: unknown) => { error.value = refused(e); });
    busy.value = false;
  };
  const wrong = problem.value;
  return <>
    <h1 tabIndex={-1}>{texts.startTitle}</h1>
    {runs.value?.items.length === 0 && <p class="lead">{texts.startEmpty}</p>}
    <form onSubmit={show} noValidate>
      <label for="addresses">{texts.addresses}</label>
      <textarea id="addresses" rows={6} spellcheck={false} autocapitalize="off"
        placeholder={texts.addressesLike} value={text.value}
        aria-describedby="addresses-hint addresses-problem" aria-invalid={!!wrong} onPaste={paste}
        onInput={(e) => { text.value = e.currentTarget.value; }} />
      <p class="hint" id="addresses-hint">{texts.addressesHint}</p>
      <p id="addresses-problem" class={wrong ? "trouble" : ""} role="alert">
        {wrong && (typeof wrong === "string" ? wrong
          : <>{texts.addressesBad} <Scraped value={wrong.bad} most={100} /></>)}</p>
      {(!kept.value || !entriesKept.value) && <p class="note">{texts.draftTooLarge}</p>}
      {error.value && <Trouble error={error.value} again={() => void show()} />}
      <p class="actions"><button aria-disabled={busy.value}>{texts.showRows}</button>
        <button id="build" class="second" aria-disabled={busy.value}>{building.instead}</button></p>
      <p role="status">{busy.value && texts.reading}</p>
    </form>
    {runs.error ? <Trouble error={runs.error} again={runs.again} />
      : runs.value && runs.value.items.length > 0 && <section>
        <h2>{texts.recentRuns}</h2>
        <RunTable runs={runs.value.items} names={known} />
        <p><a href={address("/runs")}>{texts.allRuns}</a></p>
      </section>}
  </>;
}

/** The fields of rows, in the order of the recipe and then as they come; not the server's. */
export function fieldsOf(rows: Record<string, unknown>[], first: string[] = []): string[] {
  const names = new Set(first);
  for (const row of rows) {
    for (const name of Object.keys(row)) {
      if (!name.startsWith("_")) {
        names.add(name);
      }
    }
  }
  return [...names];
}

const mostShown = { rows: 8, fields: 12 };

function SampleRows(props: { of: ScraperProposal; label: string }) {
  const rows = props.of.sampleData.slice(0, mostShown.rows);
  const fields = fieldsOf(rows, props.of.scraperDTO.itemsConfig.map((f) => f.name))
    .slice(0, mostShown.fields);
  return <div class="scroll" tabIndex={0} role="region" aria-label={props.label}>
    <table><thead><tr>
      {fields.map((name) => <th scope="col" key={name}><Scraped value={name} most={60} /></th>)}
    </tr></thead><tbody>
      {rows.map((row, i) => <tr key={i}>
        {fields.map((name) => <td key={name}><Scraped value={row[name]} most={120} /></td>)}
      </tr>)}
    </tbody></table>
  </div>;
}

/** Nothing is about to be launched. */
function NoDraft() {
  return <><h1 tabIndex={-1}>{texts.launchTitle}</h1>
    {lastRun.value && <p><a href={address(lastRun.value)}>{texts.lastLaunched}</a></p>}
    <p>{texts.draftNone} <a href={address("/")}>{texts.navStart}</a></p></>;
}

/** What was refused when a name was given. A name that another scraper has leads to a free one. */
export function NameTrouble(props: { error: Refused; from: string; take: (free: string) => void }) {
  const { error } = props;
  return <>
    <Trouble error={error} />
    {error.code === "NAME_TAKEN" && <p class="actions">
      <button type="button" class="second" onClick={() => props.take(newName(props.from))}>
        {texts.nameFree}</button></p>}
  </>;
}

/** Asks what a run of a scraper on these addresses will cost. */
export const estimate = (scraper: Scraper, addresses: string[]) =>
  call<RunEstimate>("POST", `/api/scraper/${scraper.id}/estimate`,
    { query: { links: addresses.length > 1 ? addresses.length : undefined } });

/** A proposal as it is saved, with or without the pages that follow. */
const followed = ({ scraperDTO: was }: ScraperProposal, following: boolean) => ({ ...was,
  sourceConfig: { ...was.sourceConfig,
    pagination: following ? was.sourceConfig.pagination : null } });

/** Saves a proposal and asks what it will cost. Another one than before, or in another group, is
 * another scraper. */
async function choose(all: ScraperProposal[], chosen: number): Promise<void> {
  const here = stays();
  const begun = draft.value!;
  const group = await groupOf(begun);
  const was = { ...begun, group, newGroup: undefined };
  const other = was.chosen !== undefined && (was.chosen !== chosen
    || was.scraper !== undefined && was.scraper.groupRef !== group);
  const now: Draft = { ...was, chosen, ...other && { saveKey: newKey(),
    name: was.scraper?.name === was.name ? newName(was.addresses[0]!) : was.name } };
  change(begun, now);
  const body = { ...followed(all[chosen]!, !listsPages(now.addresses)), name: now.name,
    groupRef: group };
  // one that is saved may have been changed since, at the launch
  const scraper = !other && was.scraper?.name === now.name ? was.scraper
    : await call<Scraper>("PUT", "/api/scraper", { key: now.saveKey, body })
      .catch((e: unknown) => {
        if (!refused(e).unknown) {
          change(now, { ...now, saveKey: newKey() });
        }
        throw e;
      });
  const saved = { ...now, scraper, estimate: undefined, following: undefined };
  change(now, saved);
  change(saved, { ...saved, estimate: await estimate(scraper, now.addresses) });
  if (here()) {
    go(address("/launch"));
  }
}

/** Where a person chooses which rows. */
export function Candidates() {
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const now = draft.value;
  if (!now?.proposals) {
    return <NoDraft />;
  }
  const taken = now.scraper?.groupRef === now.group && now.estimate;
  const use = async (chosen: number) => {
    if (busy.value) {
      return;
    }
    busy.value = true;
    error.value = undefined;
    await choose(now.proposals!, chosen).catch((e: unknown) => { error.value = refused(e); });
    busy.value = false;
  };
  const rename = (name: string) => {
    draft.value = { ...draft.value!, name, saveKey: newKey() };
  };
  return <>
    <h1 tabIndex={-1}>{texts.candidatesTitle}</h1>
    <p class="lead">{texts.candidatesOf} <Scraped value={now.addresses[0]} /></p>
    {now.proposals.length === 0 ? <p class="note">{texts.candidatesNone}</p> : <>
      <div class="filter"><div><label for="name">{texts.name}</label>
        <input id="name" value={now.name} maxLength={mostName} readOnly={busy.value}
          onInput={(e) => rename(e.currentTarget.value)} /></div>
      <ChooseGroup of={now} busy={busy.value} choose={(next) => {
        draft.value = { ...draft.value!, ...next, saveKey: newKey() };
      }} /></div></>}
    {taken && <p class="note">{texts.toLaunchHint}{" "}
      <a href={address("/launch")}>{texts.toLaunch}</a></p>}
    {error.value && <NameTrouble error={error.value} from={now.addresses[0]!} take={(free) => {
      rename(free);
      error.value = undefined;
    }} />}
    <p role="status">{busy.value && texts.using}</p>
    {now.proposals.map((proposal, i) => {
      const title = texts.candidate(count(i + 1));
      return <section class="card" key={i} aria-label={title}>
        <div class="cardhead"><h2>{title}: {texts.rowsShown(
          count(Math.min(proposal.sampleData.length, mostShown.rows)))}</h2>
        <button type="button" aria-disabled={busy.value} aria-label={`${texts.use}: ${title}`}
          class={i === 0 ? "" : "second"} onClick={() => void use(i)}>
          {texts.use}</button></div>
        <SampleRows of={proposal} label={texts.rowsOfCandidate(title)} />
      </section>;
    })}
    <p><a href={address("/build", { url: now.addresses[0]! })}>{building.instead}</a></p>
    <p><a href={address("/")}>{texts.back}</a></p>
  </>;
}

/** Launches a scraper that ran before. One of a list takes all of its list again, or what is left. */
async function launchAgain({ scraper, rest, launchKey: key }: Draft, micros: number | undefined):
Promise<string> {
  const { id } = scraper!;
  if (!isList(scraper!)) {
    const run = await call<LaunchedRun>("POST", `/api/scraper/${id}/run`,
      { key, query: { maxChargeMicros: micros } });
    return `/runs/${run.scraperId}/${run.jobId}`;
  }
  const body: ListRunInput = { scraperId: id, ...rest ? { rerun: true } : { force: true },
    maxChargeMicros: micros ?? null };
  const run = await call<LaunchedListRun>("POST", "/api/scraper/url-list-run", { key, body });
  return `/runs/${run.scraperId}/${run.jobId}`;
}

/** Launches what was chosen, once for a key, and answers where the run is. */
async function launch(now: Draft, micros: number | undefined): Promise<string> {
  const scraper = now.scraper!;
  if (now.again) {
    return launchAgain(now, micros);
  }
  if (now.addresses.length > 1) {
    const body: ListRunInput = { groupId: scraper.groupRef, name: texts.listOf(now.name),
      urls: now.addresses, templateScraperId: scraper.id, maxChargeMicros: micros ?? null };
    const run = await call<LaunchedListRun>("POST", "/api/scraper/url-list-run",
      { key: now.launchKey, body });
    return `/runs/${run.scraperId}/${run.jobId}`;
  }
  const run = await call<LaunchedRun>("POST", `/api/scraper/${scraper.id}/run`,
    { key: now.launchKey, query: { maxChargeMicros: micros } });
  return `/runs/${run.scraperId}/${run.jobId}`;
}

function Estimate(props: { of: RunEstimate; repeats: number }) {
  const { of, repeats } = props;
  return <>
    <dl class="facts">
      <Fact name={texts.estimate}>
        <strong>{money(of.minMicros)}
          {of.maxMicros > of.minMicros && ` – ${money(of.maxMicros)}`}</strong></Fact>
      <Fact name={texts.links}>{texts.estimateOf(count(of.links), count(of.pages))}</Fact>
      <Fact name={texts.balance}>{money(of.balanceMicros)}</Fact>
    </dl>
    <p class="hint">{of.runsConsidered > 0 ? texts.estimatePast(count(of.runsConsidered))
      : of.maxMicros > of.minMicros ? texts.estimateAll : texts.estimateOne}</p>
    {repeats > 0 && <p class="hint">{texts.repeats(count(repeats))}</p>}
    {!of.affordable && <p class="note">{texts.unaffordable}</p>}
  </>;
}

/** Has the scraper follow the list, or not, and asks what it will cost then. */
async function follow(now: Draft): Promise<void> {
  const { id, name, groupRef } = now.scraper!;
  const scraper = await call<Scraper>("PUT", "/api/scraper", { key: newKey(),
    body: { ...followed(now.proposals![now.chosen!]!, now.following!), id, name, groupRef } });
  change(now, { ...now, scraper, estimate: await estimate(scraper, now.addresses),
    following: undefined, launchKey: newKey() });
}

/** Asks whether the pages that follow are read, too. A reload goes on with an unsaved answer. */
function Following(props: { of: Draft; by: Pagination }) {
  const { of, by } = props;
  const error = useSignal<Refused | undefined>(undefined);
  const pending = of.following !== undefined;
  const save = () => {
    error.value = undefined;
    void follow(of).catch((e: unknown) => { error.value = refused(e); });
  };
  useEffect(() => {
    if (pending) {
      save();
    }
  }, [of.following]);
  return <>
    <p>{building.goesOnBy[by.type] ?? building.goesOnElse}</p>
    <label class="check"><input id="follow" type="checkbox" aria-disabled={pending}
      checked={of.following ?? !!of.scraper!.sourceConfig.pagination}
      onClick={(e) => pending && e.preventDefault()}
      onChange={(e) => { draft.value = { ...of, following: e.currentTarget.checked }; }} />
    {building.follow}</label>
    {error.value && <Trouble error={error.value} again={save} />}
    <p role="status">{pending && !error.value && texts.preparing}</p>
  </>;
}

/** Where a person sees what it costs, and launches. */
export function Launch() {
  const error = useSignal<Refused | undefined>(undefined);
  const problem = useSignal("");
  const busy = useSignal(false);
  const now = draft.value;
  if (!now?.scraper || !now.estimate) {
    return <NoDraft />;
  }
  const cap = now.cap ?? entered(now.estimate.maxMicros);
  const goesOn = now.chosen === undefined ? undefined
    : now.proposals?.[now.chosen]?.scraperDTO.sourceConfig.pagination;
  const waits = busy.value || now.following !== undefined;
  const start = async (event?: Event) => {
    event?.preventDefault();
    if (waits) {
      return;
    }
    error.value = undefined;
    const micros = parseMoney(cap);
    problem.value = Number.isNaN(micros) ? texts.capBad : "";
    if (problem.value) {
      document.getElementById("cap")?.focus();
      return;
    }
    busy.value = true;
    const here = stays();
    try {
      const to = await launch(now, micros);
      lastRun.value = to;
      change(now, undefined);
      if (here()) {
        go(address(to));
      }
    } catch (e) {
      error.value = refused(e);
      if (!error.value.unknown) {
        change(now, { ...now, launchKey: newKey() });
      }
    }
    busy.value = false;
  };
  const limit = (entered: string) => { // another cap is another launch
    draft.value = { ...draft.value!, cap: entered, launchKey: newKey() };
  };
  return <>
    <h1 tabIndex={-1}>{texts.launchTitle}</h1>
    <p class="lead"><Scraped value={now.scraper.name} /></p>
    {goesOn && <Following of={now} by={goesOn} />}
    <Estimate of={now.estimate} repeats={now.repeats ?? 0} />
    <form onSubmit={start} noValidate>
      <label for="cap">{texts.cap}</label>
      <input id="cap" class="short" inputMode="decimal" value={cap} autocomplete="off"
        readOnly={waits}
        aria-describedby="cap-hint cap-problem" aria-invalid={!!problem.value}
        onInput={(e) => limit(e.currentTarget.value)} />
      <p class="hint" id="cap-hint">{texts.capHint}</p>
      <p id="cap-problem" class={problem.value ? "trouble" : ""} role="alert">{problem.value}</p>
      {error.value && <Trouble error={error.value} again={() => void start()} />}
      <button aria-disabled={waits}>{texts.launch}</button>
      <p role="status">{busy.value && texts.launching}</p>
    </form>
    <p>{now.again ? <a href={address(now.again)}>{now.again.startsWith("/runs") ? texts.runTitle
      : texts.scraper}</a>
      : now.proposals ? <a href={address("/candidates")}>{texts.candidatesTitle}</a>
      : <a href={address("/build", { url: now.addresses[0]! })}>{building.title}</a>}</p>
  </>;
}
