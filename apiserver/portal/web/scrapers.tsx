// Scrapers: the list of them, what each reads, its runs, and its end.
import { useSignal } from "@preact/signals";
import type { Group, Scraper, ScraperCursorPage } from "./schema.gen";
import { isList, prepareAgain } from "./again";
import { call, Refused } from "./api";
import { changesOf, useEntry } from "./entries";
import { Came, Cursor, Do, Entry, Form, Select, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { Removal } from "./removal";
import { address, go, place } from "./route";
import { choices, Fact, Scraped, visible, when } from "./show";
import { texts } from "./texts.rest";

const page = 50;

const groupsOf = (signal: AbortSignal) =>
  call<Group[]>("GET", "/api/scraper/group/list", { signal });

/** What a scraper reads: an address, a request, searches, or what each run is given. */
function Source(props: { of: Scraper }) {
  const { url, curl, queries } = props.of.sourceConfig;
  return props.of.type === "FILE" ? <>{texts.sourceFile}</>
    : url || curl ? <Scraped value={url || curl} most={100} />
    : isList(props.of) ? <>{texts.sourceList}</>
      : <Scraped value={(queries ?? []).join(", ")} most={100} />;
}

/** How a scraper's last run ended, or that there was none. */
const lastOf = (scraper: Scraper) => scraper.lastRunState
  ? texts.states[scraper.lastRunState] ?? scraper.lastRunState : "–";

/** All scrapers, those of a group, or those whose names have a text in them. */
export function Scrapers() {
  const said = place.value.query;
  const group = said.get("groupId") ?? "", q = said.get("q") ?? "";
  const groups = useLoaded(groupsOf, [resynced.value]);
  const names = new Map((groups.value ?? []).map((g) => [g.id, g.name]));
  const ask = ({ cursor }: { cursor?: string }, signal?: AbortSignal) =>
    call<ScraperCursorPage>("GET", "/api/scraper/list", { signal,
      query: { limit: page, cursor, groupId: group || undefined, q: q || undefined } });
  return <>
    <h1 tabIndex={-1}>{texts.scrapers}</h1>
    <p class="lead">{texts.scrapersLead}</p>
    <Which key={`${group} ${q}`} group={group} q={q} groups={groups.value ?? []} />
    <Cursor<Scraper, ScraperCursorPage> ask={ask} reasons={[group, q, resynced.value]}>{(all) =>
      all.length === 0 && !group && !q
        ? <p>{texts.scrapersNone} <a href={address("/")}>{texts.startTitle}</a></p>
        : <Table caption={texts.scrapers} items={all} none={texts.scrapersNoneSo} columns={[
          { name: texts.scraper, of: (s) => <a href={address(`/scrapers/${s.id}`)}>
            <Scraped value={s.name} most={100} /></a> },
          { name: texts.group, of: (s) => <Scraped value={names.get(s.groupRef) ?? s.groupRef}
            most={60} /> },
          { name: texts.source, of: (s) => <Source of={s} /> },
          { name: texts.lastRun, of: lastOf },
          { name: texts.next, of: (s) => when(s.nextStart) }]} />}</Cursor>
  </>;
}

/** What of the scrapers is shown. */
function Which(props: { group: string; q: string; groups: Group[] }) {
  const q = useEntry("q", props.q);
  const show = (group: string) => go(address("/scrapers", { ...q.value && { q: q.value },
    ...group && { groupId: group } }), true);
  const all = choices(props.groups);
  return <form class="filter choice" role="search" aria-label={texts.scrapersFilter}
    onSubmit={(event) => {
      event.preventDefault();
      show(props.group);
    }}>
    <div><label for="groupId">{texts.group}</label>
      <select id="groupId" value={props.group} onChange={(e) => show(e.currentTarget.value)}>
        <option value="">{texts.anyGroup}</option>
        {props.group && !all.some(([id]) => id === props.group)
          && <option value={props.group}>{props.group}</option>}
        {all.map(([id, name]) => <option key={id} value={id}>{name}</option>)}
      </select></div>
    <div><label for="q">{texts.name}</label>
      <input id="q" type="search" value={q.value} maxLength={200} autocomplete="off"
        onInput={(e) => { q.value = e.currentTarget.value; }} /></div>
    <button class="second">{texts.searchDo}</button>
  </form>;
}

/** One scraper. */
export function OneScraper(props: { id: string }) {
  const read = useLoaded(async (signal) => {
    const [scraper, groups] = await Promise.all([
      call<Scraper>("GET", `/api/scraper/${encodeURIComponent(props.id)}`, { signal })
        .catch((e: unknown) => {
          if (e instanceof Refused && e.code === "scraper_not_found") {
            return undefined;
          }
          throw e;
        }),
      groupsOf(signal)]);
    return { scraper, groups };
  }, [props.id, resynced.value]);
  return <Shown of={read} title={texts.scraper}>{({ scraper, groups }) => !scraper
    ? <><h1 tabIndex={-1}>{texts.scraper}</h1>
      <p>{texts.scraperMissing} <a href={address("/scrapers")}>{texts.scrapers}</a></p></>
    : <>
    <h1 tabIndex={-1}>{texts.scraper} <bdi>{visible(scraper.name, 200)}</bdi></h1>
    <dl class="facts">
      <Fact name={texts.group}><a href={address(`/groups/${scraper.groupRef}`)}><Scraped
        value={groups.find((g) => g.id === scraper.groupRef)?.name ?? scraper.groupRef}
        most={100} /></a></Fact>
      <Fact name={texts.source}><Source of={scraper} /></Fact>
      <Fact name={texts.type}>{texts.types[scraper.type] ?? scraper.type}</Fact>
      {scraper.type !== "FILE" && <Fact name={texts.following}>
        {scraper.sourceConfig.pagination ? texts.followingYes : texts.followingNo}</Fact>}
      <Fact name={texts.lastRun}>{lastOf(scraper)}</Fact>
      <Fact name={texts.next}>{when(scraper.nextStart)}</Fact>
      <Fact name={texts.made}>{when(scraper.createdAt)}</Fact>
    </dl>
    <Actions of={scraper} />
    {scraper.itemsConfig.length > 0 && <>
      <h2>{texts.fields}</h2>
      <Table caption={texts.fields} items={scraper.itemsConfig} none="" columns={[
        { name: texts.field, of: (f) => <Scraped value={f.name} most={60} /> },
        { name: texts.fieldWhat, of: (f) => f.kind === "ATTR"
          ? <>{texts.fieldKinds.ATTR} <Scraped value={f.attr} most={60} /></>
          : texts.fieldKinds[f.kind] },
        { name: texts.selector, wide: true, of: (f) => <code>
          <Scraped value={f.selector} most={300} /></code> }]} /></>}
    <Settings of={scraper} groups={groups} changed={read.again} />
    <h2>{texts.scraperRemove}</h2>
    <Remove id={scraper.id} />
  </>}</Shown>;
}

/** What one does with a scraper. */
function Actions(props: { of: Scraper }) {
  const { of } = props;
  const act = useAct();
  return <>
    <p class="actions">
      {of.type === "FILE" ? <a class="button" href={address("/uploads")}>{texts.uploadNext}</a>
        : <Do act={act} text={texts.runIt} go={() => void act.run("run", () =>
          prepareAgain(of, `/scrapers/${of.id}`))} />}
      <a class="button" href={address("/runs", { scraperId: of.id })}>{texts.itsRuns}</a>
      <a class="button" href={address(`/rows/${of.groupRef}`, { scraper: of.id })}>
        {texts.itsRows}</a>
    </p>
    <Came of={act} />
  </>;
}

/** Its name, the group that stores its rows, and when it starts by itself. */
function Settings(props: { of: Scraper; groups: Group[]; changed: () => void }) {
  const { of } = props;
  const name = useEntry("name", of.name);
  const group = useEntry("group", of.groupRef);
  const schedule = useEntry("schedule", of.schedule);
  const zone = useEntry("zone", of.scheduleTimezone);
  const act = useAct();
  const save = () => {
    const changed = changesOf({ name: of.name, groupRef: of.groupRef, schedule: of.schedule,
      scheduleTimezone: of.scheduleTimezone }, { name: name.value, groupRef: group.value,
      schedule: schedule.value, scheduleTimezone: zone.value });
    void act.run(changed, async (key) => {
      const now = await call<Scraper>("GET", `/api/scraper/${of.id}`);
      await call<Scraper>("PUT", "/api/scraper", { key, body: { ...now, ...changed } });
      props.changed();
      return texts.saved;
    });
  };
  return <>
    <h2>{texts.scraperSettings}</h2>
    <Form act={act} send={save} button={texts.save} label={texts.scraperSettings}
      names={{ name: texts.name, groupRef: texts.group, schedule: texts.ownSchedule,
        scheduleTimezone: texts.zone }}>
      <Entry id="name" label={texts.name} value={name} most={200} />
      <Select id="group" label={texts.group} value={group} hint={texts.moveHint}
        options={choices(props.groups)} />
      {isList(of) && <p class="hint">{texts.listStarts}</p>}
      {of.type !== "FILE" && !isList(of) && <>
        <Entry id="schedule" label={texts.ownSchedule} value={schedule} hint={texts.cronHint} short
          most={128} />
        <Entry id="zone" label={texts.zone} value={zone} hint={texts.zoneHint} short most={64} />
      </>}
    </Form>
  </>;
}

function Remove(props: { id: string }) {
  const rows = useSignal(false);
  return <>
    <label class="check"><input type="checkbox" checked={rows.value}
      onChange={(e) => { rows.value = e.currentTarget.checked; }} />{texts.removeRows}</label>
    <Removal key={String(rows.value)} path={`/api/scraper/${encodeURIComponent(props.id)}`}
      query={{ withData: rows.value }} text={texts.scraperRemove}
      done={() => go(address("/scrapers"))} />
  </>;
}
