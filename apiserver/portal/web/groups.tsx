// Groups: how they start, whom they are shared with, what is kept, and their end.
import { useSignal } from "@preact/signals";
import type { Group as Of, GroupEstimate, RunsOfGroup, Starts,
  StartTypeForGroup } from "./schema.gen";
import { call, listNames, readNames } from "./api";
import { changesOf, useEntry } from "./entries";
import { Came, Do, Entry, Form, Select, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { Removal } from "./removal";
import { address, go, stays } from "./route";
import { count, entered, Fact, money, parseMoney, Scraped, visible, when } from "./show";
import { texts } from "./texts.rest";

const read = (signal: AbortSignal) => call<Of[]>("GET", "/api/scraper/group/list", { signal });

/** A name of a start type. */
export const startOf = (type: string) => texts.startTypes[type] ?? type;

/** All groups, one's own and others'. */
export function GroupList() {
  const own = useLoaded(read, [resynced.value]);
  const shared = useLoaded((signal) => call<Of[]>("GET", "/api/scraper/shared/group/list",
    { signal }), [resynced.value]);
  const name = useEntry("group-name", "");
  const act = useAct();
  const make = () => void act.run(name.value, async (key) => {
    const here = stays();
    const made = await call<Of>("PUT", "/api/scraper/group", { key, body: { name: name.value } });
    if (here()) {
      go(address(`/groups/${made.id}`));
    }
  });
  return <>
    <h1 tabIndex={-1}>{texts.groups}</h1>
    <p class="lead">{texts.groupsLead}</p>
    <Shown of={own}>{(groups) => <Table caption={texts.groups} items={groups}
      none={texts.groupsNone} columns={[
        { name: texts.group, of: (g) => <a href={address(`/groups/${g.id}`)}>
          <Scraped value={g.name} most={100} /></a> },
        { name: texts.rows, of: (g) => <a href={address(`/rows/${g.id}`)}>{texts.seeRows}</a> },
        { name: texts.scrapers, n: true, of: (g) => count(g.scraperCount) },
        { name: texts.starts, of: (g) => startOf(g.startType) },
        { name: texts.next, of: (g) => when(g.nextStart) },
        { name: texts.made, of: (g) => when(g.createdAt) }]} />}</Shown>
    <h2>{texts.groupNew}</h2>
    <Form act={act} send={make} button={texts.groupMake} label={texts.groupNew}
      names={{ name: texts.groupName }}>
      <Entry id="group-name" label={texts.groupName} value={name} most={200} />
    </Form>
    <h2>{texts.sharedWithMe}</h2>
    <Shown of={shared}>{(groups) => <Table caption={texts.sharedWithMe} items={groups}
      none={texts.sharedNone} columns={[
        { name: texts.group, of: (g) => <a href={address(`/rows/${g.id}`)}>
          <Scraped value={g.name} most={100} /></a> },
        { name: texts.made, of: (g) => when(g.createdAt) }]} />}</Shown>
  </>;
}

/** One group. */
export function Group(props: { id: string }) {
  const found = useLoaded(async (signal) =>
    (await read(signal)).find((g) => g.id === props.id) ?? null, [props.id, resynced.value]);
  const starts = useLoaded((signal) => call<Starts>("GET",
    `/api/scraper/group/${encodeURIComponent(props.id)}/starts`, { signal }),
  [props.id, resynced.value]);
  return <Shown of={found} title={texts.group}>{(group) => !group
    ? <><h1 tabIndex={-1}>{texts.group}</h1>
      <p>{texts.groupMissing} <a href={address("/groups")}>{texts.groups}</a></p></>
    : <>
      <h1 tabIndex={-1}>{texts.group} <bdi>{visible(group.name, 200)}</bdi></h1>
      <dl class="facts">
        <Fact name={texts.scrapers}>{count(group.scraperCount)}</Fact>
        <Fact name={texts.starts}>{startOf(group.startType)}</Fact>
        <Fact name={texts.next}>{when(group.nextStart)}</Fact>
        <Fact name={texts.zone}>{group.scheduleTimezone || texts.zoneNone}</Fact>
        <Fact name={texts.keeps}>{group.retentionCount === null ? texts.keepsAll
          : texts.keepsRuns(count(group.retentionCount))}</Fact>
      </dl>
      <p class="actions"><a class="button" href={address(`/rows/${group.id}`)}>{texts.seeRows}</a>
        <a class="button" href={address("/scrapers", { groupId: group.id })}>
          {texts.seeScrapers}</a></p>
      <RunNow group={group} />
      <h2>{texts.schedule}</h2>
      <StartType group={group} changed={() => { found.again(); starts.again(); }} />
      <h3>{texts.startsPast}</h3>
      <Shown of={starts}>{(s) => <StartTable starts={s} />}</Shown>
      <Settings group={group} changed={() => { found.again(); starts.again(); }} />
      <Shares group={group.id} />
      <h2>{texts.groupRemove}</h2>
      <RemoveGroup id={group.id} />
    </>}</Shown>;
}

function StartTable(props: { starts: Starts }) {
  return <Table caption={texts.startsPast} items={props.starts.starts} none={texts.startsNone}
    columns={[
      { name: texts.startAt, of: (s) => when(s.at) },
      { name: texts.outcome, of: (s) => texts.outcomes[s.outcome] ?? s.outcome },
      { name: texts.launched, n: true, of: (s) => count(s.launched) },
      { name: texts.skipped, n: true, of: (s) => count(s.skipped) },
      { name: texts.missed, n: true, of: (s) => count(s.missed) },
      { name: texts.reason, wide: true, of: (s) => s.reason
        ? texts.reasons[s.reason] ?? <Scraped value={s.reason} /> : "–" }]} />;
}

function StartType(props: { group: Of; changed: () => void }) {
  const { group } = props;
  const type = useEntry<string>("start-type", group.startType);
  const act = useAct();
  const set = () => void act.run(type.value, async (key) => {
    const all = await call<StartTypeForGroup[]>("PUT",
      `/api/scraper/group/${group.id}/start-type/${type.value}`, { key });
    props.changed();
    return texts.startSet(count(all.length));
  });
  return <Form act={act} send={set} button={texts.save} label={texts.schedule}>
    <Select id="start-type" label={texts.starts} value={type} hint={texts.startHint}
      options={["MANUAL", "DAILY", "WEEKLY", "NONE"].map((t) => [t, startOf(t)])} />
  </Form>;
}

function Settings(props: { group: Of; changed: () => void }) {
  const { group } = props;
  const name = useEntry("name", group.name);
  const zone = useEntry("zone", group.scheduleTimezone);
  const keeps = useEntry("keeps", group.retentionCount === null ? "" : String(group.retentionCount));
  const alerts = useEntry("alerts", group.changeAlerts.join(","));
  const apart = useEntry("alerts-key", listNames(group.changeAlertsKey));
  const holds = useEntry("quarantine", group.quarantine);
  const bad = useSignal(false);
  const act = useAct();
  const save = () => {
    bad.value = !/^\s*\d*\s*$/.test(keeps.value);
    if (bad.value) {
      return;
    }
    const { scheduleTimezone, retentionCount, quarantine, changeAlerts, changeAlertsKey } = group;
    const body = { id: group.id, ...changesOf({ name: group.name, scheduleTimezone,
      retentionCount, quarantine, changeAlerts, changeAlertsKey }, { name: name.value,
      scheduleTimezone: zone.value,
      retentionCount: keeps.value.trim() ? Number(keeps.value) : null, quarantine: holds.value,
      changeAlerts: alerts.value ? alerts.value.split(",") : [],
      changeAlertsKey: alerts.value ? readNames(apart.value) : [] }) };
    void act.run(body, async (key) => {
      await call("PUT", "/api/scraper/group", { key, body });
      props.changed();
      return texts.saved;
    });
  };
  return <>
    <h2>{texts.groupSettings}</h2>
    <Form act={act} send={save} button={texts.save} label={texts.groupSettings}
      names={{ name: texts.groupName, scheduleTimezone: texts.zone,
        retentionCount: texts.keeps, changeAlerts: texts.alerts,
        changeAlertsKey: texts.alertsKey }}>
      <Entry id="name" label={texts.groupName} value={name} most={200} />
      <Entry id="zone" label={texts.zone} value={zone} hint={texts.zoneHint} list="zones" />
      <datalist id="zones">{Intl.supportedValuesOf("timeZone").map((z) =>
        <option key={z} value={z} />)}</datalist>
      <Entry id="keeps" label={texts.keeps} value={keeps} hint={texts.keepsHint} short
        problem={bad.value ? texts.wholeNumber : undefined} />
      <label class="check"><input type="checkbox" checked={holds.value}
        onChange={(e) => { holds.value = e.currentTarget.checked; }} />{texts.quarantine}</label>
      <Select id="alerts" label={texts.alerts} value={alerts} hint={texts.alertsHint}
        options={[...new Set([...Object.keys(texts.alertsOf), group.changeAlerts.join(",")])]
          .map((on) => [on, texts.alertsOf[on] ?? on])} />
      <Entry id="alerts-key" label={texts.alertsKey} value={apart} hint={texts.alertsKeyHint} />
    </Form>
  </>;
}

function RunNow(props: { group: Of }) {
  const { group } = props;
  const estimate = useEntry<GroupEstimate | undefined>("estimate", undefined);
  const cap = useEntry("cap", "");
  const bad = useSignal(false);
  const skipped = useSignal<RunsOfGroup["skipped"]>([]);
  const act = useAct();
  const look = () => act.run("estimate", async () => {
    const read = await call<GroupEstimate>("POST", `/api/scraper/group/${group.id}/estimate`);
    estimate.value = read;
    cap.value = entered(read.maxMicros);
  });
  const launch = () => {
    const micros = parseMoney(cap.value);
    bad.value = Number.isNaN(micros);
    if (bad.value) {
      return;
    }
    void act.run(micros ?? "none", async (key) => {
      const runs = await call<RunsOfGroup>("POST", `/api/scraper/group/${group.id}/run`,
        { key, query: { maxChargeMicros: micros } });
      skipped.value = runs.skipped;
      estimate.value = undefined;
      return texts.groupLaunched(count(runs.jobs.length), count(runs.skippedTotal));
    });
  };
  const stop = () => act.run("stop", async (key) => {
    const runs = await call<RunsOfGroup>("POST", `/api/scraper/group/${group.id}/stop`, { key });
    return texts.groupStopped(count(runs.jobs.length));
  });
  const now = estimate.value;
  return <section>
    <h2>{texts.groupRun}</h2>
    {!now ? <p class="actions">
      <Do act={act} text={texts.groupEstimate} go={() => void look()} />
      <Do act={act} text={texts.groupStop} go={() => void stop()} /></p>
      : <form noValidate onSubmit={(e) => { e.preventDefault(); launch(); }}>
        <dl class="facts">
          <Fact name={texts.estimate}>{money(now.minMicros)}
            {now.maxMicros > now.minMicros && ` – ${money(now.maxMicros)}`}</Fact>
          <Fact name={texts.scrapers}>{count(now.scrapers)}</Fact>
          <Fact name={texts.pages}>{count(now.pages)}</Fact>
        </dl>
        {!now.affordable && <p class="note">{texts.unaffordable}</p>}
        {now.scrapers === 0 && <p class="note">{texts.groupLists}</p>}
        <Entry id="cap" label={texts.cap} value={cap} hint={texts.capHint} short decimal
          problem={bad.value ? texts.capBad : undefined} />
        <p class="actions">{now.scrapers > 0
          && <button aria-disabled={act.busy}>{texts.groupLaunch}</button>}
          <Do act={act} text={texts.cancel} go={() => { estimate.value = undefined; }} /></p>
      </form>}
    <Came of={act} names={{ maxChargeMicros: texts.cap }} />
    {skipped.value.length > 0 && <Table caption={texts.skipped} items={skipped.value} none=""
      columns={[{ name: texts.scraper, of: (s) => <code>{s.scraperId}</code> },
        { name: texts.reason, wide: true, of: (s) => texts.reasons[s.reason] ?? s.reason }]} />}
  </section>;
}

function Shares(props: { group: string }) {
  const path = `/api/scraper/shared/group/${props.group}`;
  const list = useLoaded((signal) => call<string[]>("GET", `${path}/list`, { signal }),
    [props.group, resynced.value]);
  const email = useEntry("share", "");
  const bad = useSignal(false);
  const act = useAct();
  const add = () => {
    const emails = email.value.split(/[\s,;]+/).filter(Boolean);
    bad.value = emails.length === 0; // what an address is, the API says
    if (bad.value) {
      document.getElementById("share")?.focus();
      return;
    }
    void act.run(email.value, async (key) => {
      await call("PUT", path, { key, body: emails.map((e) => ({ email: e })) });
      email.value = "";
      list.again();
      return texts.shareDone;
    });
  };
  const end = (whom: string) => act.run(["end", whom], async (key) => {
    await call("DELETE", path, { key, query: { email: whom } });
    list.again();
    return texts.shareEnded;
  });
  return <section>
    <h2>{texts.shares}</h2>
    <p class="hint">{texts.sharesHint}</p>
    <Shown of={list}>{(emails) => <Table caption={texts.shares} items={emails}
      none={texts.sharesNone} columns={[
        { name: texts.email, of: (e) => <Scraped value={e} /> },
        { name: texts.change, of: (e) => <Do act={act} text={texts.shareEnd} of={e} kind="plain"
          go={() => void end(e)} /> }]} />}</Shown>
    <Form act={act} send={add} button={texts.share} label={texts.shares}>
      <Entry id="share" label={texts.shareWith} value={email} type="text"
        hint={texts.shareHint} problem={bad.value ? texts.shareBad : undefined} />
    </Form>
  </section>;
}

function RemoveGroup(props: { id: string }) {
  const rows = useSignal(false);
  return <>
    <label class="check"><input type="checkbox" checked={rows.value}
      onChange={(e) => { rows.value = e.currentTarget.checked; }} />{texts.removeRows}</label>
    <Removal key={String(rows.value)} path={`/api/scraper/group/${props.id}`}
      query={{ withData: rows.value }}
      text={texts.groupRemove} done={() => go(address("/groups"))} />
  </>;
}
