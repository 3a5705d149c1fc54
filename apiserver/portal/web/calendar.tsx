// What starts by itself, as a month of days.
import { useSignal } from "@preact/signals";
import type { Group, Starts } from "./schema.gen";
import { call, readScrapers } from "./api";
import { startOf } from "./groups";
import { resynced, Shown, useLoaded } from "./load";
import { address, go, place } from "./route";
import { clock, count, day, monthOf, Scraped, weekdays } from "./show";
import { texts } from "./texts.rest";

/** Something on a day: a start that is to come, one of the past, or one that comes again. */
interface Entry {
  at: Date;
  name: string;
  group: string;
  kind: "next" | "again" | "past";
  outcome?: string;
}

const most = { scrapers: 1_000, groups: 60 }; // of which starts are shown, and asked for

const dayLong = 86_400_000;
const later = (from: Date, days: number) => {
  const to = new Date(from);
  to.setDate(to.getDate() + days);
  return to;
};

/** What there is, and what comes again from a day until another. */
async function readEntries(begin: Date, end: Date, signal: AbortSignal): Promise<Entry[]> {
  const [groups, scrapers] = await Promise.all([
    call<Group[]>("GET", "/api/scraper/group/list", { signal }), readScrapers(signal, most.scrapers)]);
  const entries: Entry[] = [];
  const past = groups.filter((g) => g.startType !== "NONE" && g.scraperCount > 0)
    .slice(0, most.groups);
  for (const group of groups) {
    if (group.nextStart) {
      const next = new Date(group.nextStart);
      entries.push({ at: next, name: group.name, group: group.id, kind: "next" });
      const every = group.startType === "WEEKLY" ? 7 : group.startType === "DAILY" ? 1 : 0;
      const passed = Math.max(1, every && Math.floor((begin.getTime() - next.getTime())
        / (every * dayLong)));
      for (let at = later(next, every * passed); every > 0 && at < end; at = later(at, every)) {
        entries.push({ at, name: group.name, group: group.id, kind: "again" });
      }
    }
  }
  for (const scraper of scrapers) {
    if (scraper.schedule && scraper.nextStart) {
      entries.push({ at: new Date(scraper.nextStart), name: scraper.name,
        group: scraper.groupRef, kind: "next" });
    }
  }
  const starts = await Promise.all(past.map((g) => call<Starts>("GET",
    `/api/scraper/group/${g.id}/starts`, { signal })));
  starts.forEach((s, i) => s.starts.forEach((one) => {
    if (one.at) {
      entries.push({ at: new Date(one.at), name: past[i]!.name, group: past[i]!.id, kind: "past",
        outcome: one.outcome });
    }
  }));
  return entries.sort((a, b) => a.at.getTime() - b.at.getTime());
}

/** The first day that a month shows: a Monday. */
function firstOf(month: Date): Date {
  return later(month, -((month.getDay() + 6) % 7));
}

/** The month that the address names, or this one. */
function monthShown(): Date {
  const said = /^(\d{4})-(\d{2})$/.exec(place.value.query.get("month") ?? "");
  const now = new Date();
  return said ? new Date(Number(said[1]), Number(said[2]) - 1, 1)
    : new Date(now.getFullYear(), now.getMonth(), 1);
}

const monthName = (month: Date) =>
  `${month.getFullYear()}-${String(month.getMonth() + 1).padStart(2, "0")}`;

/** The starts of a month. */
export function Calendar() {
  const month = monthShown();
  const end = new Date(month.getFullYear(), month.getMonth() + 1, 1);
  const read = useLoaded((signal) => readEntries(firstOf(month), later(end, 7), signal),
    [monthName(month), resynced.value]);
  const turn = (by: number) => go(address("/calendar", { month:
    monthName(new Date(month.getFullYear(), month.getMonth() + by, 1)) }), true);
  return <>
    <h1 tabIndex={-1}>{texts.calendar}</h1>
    <p class="lead">{texts.calendarLead}</p>
    <p class="actions">
      <button type="button" class="second" onClick={() => turn(-1)}>{texts.monthBefore}</button>
      <strong class="month" aria-live="polite">{monthOf(month)}</strong>
      <button type="button" class="second" onClick={() => turn(1)}>{texts.monthNext}</button>
    </p>
    <Shown of={read}>{(entries) => <>
      {entries.length === 0 && <p class="note">{texts.calendarNone}{" "}
        <a href={address("/groups")}>{texts.groups}</a></p>}
      <Month month={month} entries={entries} /></>}</Shown>
    <p class="hint">{texts.calendarHint}</p>
  </>;
}

function Month(props: { month: Date; entries: Entry[] }) {
  const { month, entries } = props;
  const first = firstOf(month);
  const today = new Date().toDateString();
  const byDay = new Map<string, Entry[]>();
  entries.forEach((e) => {
    const on = e.at.toDateString();
    byDay.set(on, [...byDay.get(on) ?? [], e]);
  });
  const weeks = [0, 1, 2, 3, 4, 5].filter((w) => later(first, 7 * w) <
    new Date(month.getFullYear(), month.getMonth() + 1, 1));
  return <div class="scroll" tabIndex={0} role="region" aria-label={texts.calendar}>
    <table class="calendar">
      <caption class="unseen">{texts.calendarOf(monthOf(month))}</caption>
      <thead><tr>{weekdays(first).map((name) => <th scope="col" key={name}>{name}</th>)}</tr>
      </thead>
      <tbody>{weeks.map((week) => <tr key={week}>{[0, 1, 2, 3, 4, 5, 6].map((n) => {
        const on = later(first, 7 * week + n);
        const said = byDay.get(on.toDateString()) ?? [];
        return <td key={n} class={on.getMonth() === month.getMonth() ? "" : "other"}
          aria-current={on.toDateString() === today ? "date" : undefined}>
          <span class="day"><span class="unseen">{day(on)}</span>
            <span aria-hidden="true">{on.getDate()}</span></span>
          <Day entries={said} /></td>;
      })}</tr>)}</tbody>
    </table></div>;
}

const mostOfDay = 4;

function Day(props: { entries: Entry[] }) {
  const all = useSignal(false);
  const { entries } = props;
  const shown = all.value ? entries : entries.slice(0, mostOfDay);
  return entries.length === 0 ? null : <ul>
    {shown.map((e, i) => <li key={i} class={e.kind}>
      {e.kind !== "again" && <span>{clock(e.at)} </span>}
      <a href={address(`/groups/${e.group}`)}><Scraped value={e.name} most={40} /></a>
      <span class="unseen"> {e.kind === "again" ? texts.startAgain : e.outcome
        ? texts.outcomes[e.outcome] ?? e.outcome : startOf("PLANNED")}</span>
      {e.outcome && e.outcome !== "LAUNCHED" && <span aria-hidden="true">
        {" "}({texts.outcomes[e.outcome] ?? e.outcome})</span>}
    </li>)}
    {entries.length > shown.length && <li><button type="button" class="plain"
      onClick={() => { all.value = true; }}>{texts.moreStarts(count(entries.length - mostOfDay))}
    </button></li>}
  </ul>;
}
