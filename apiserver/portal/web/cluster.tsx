// The cluster: how it stands, its nodes, its background work and its backups.
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ClusterNode, ClusterStatus, KeptBackup, WorkItem } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Came, Do, Pager, Select, Table, useAct, usePage } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { address, go, place } from "./route";
import { about, bytes, count, duration, Fact, Scraped, when } from "./show";
import { texts } from "./texts.operators";

const every = 5_000; // what is shown is read again, in milliseconds

/** Counts up from time to time, while the page is seen. */
function useTicks(): number {
  const ticks = useSignal(0);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) {
        ticks.value++;
      }
    }, every);
    return () => clearInterval(timer);
  }, []);
  return ticks.value;
}

/** How the cluster stands. */
export function Cluster() {
  const ticks = useTicks();
  const read = useLoaded((signal) => call<ClusterStatus>("GET", "/api/admin/status", { signal }),
    [ticks, resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.cluster}</h1>
    <p class="lead">{texts.clusterLead}</p>
    <Shown of={read}>{(s) => <>
      <dl class="facts">
        <Fact name={texts.node}>{s.node}</Fact>
        <Fact name={texts.leader}>{s.leader || texts.none}</Fact>
        <Fact name={texts.shards}>{texts.ofAll(count(s.owned), count(s.shards))}</Fact>
        <Fact name={texts.openRuns}>{count(s.openJobs)}</Fact>
        <Fact name={texts.out}>{count(s.out)}</Fact>
        <Fact name={texts.pagesDone}>{count(s.pages)}</Fact>
        <Fact name={texts.pagesFailed}>{count(s.pageErrors)}</Fact>
        <Fact name={texts.applied}>{count(s.applied)}</Fact>
        <Fact name={texts.term}>{count(s.term)}</Fact>
      </dl>
      {!s.leader && <p class="trouble">{texts.noLeader}</p>}
      {s.owned < s.shards && <p class="note">{texts.shardsFree(count(s.shards - s.owned))}</p>}
      <h2>{texts.lag}</h2>
      <Table caption={texts.lag} items={Object.entries(s.lag)} none={texts.lagNone} columns={[
        { name: texts.topic, of: ([topic]) => topic },
        { name: texts.records, n: true, of: ([, n]) => count(Number(n)) }]} />
    </>}</Shown>
  </>;
}

/** The nodes, and their drains. */
export function Nodes() {
  const ticks = useTicks();
  const act = useAct();
  const read = useLoaded((signal) => call<ClusterNode[]>("GET", "/api/admin/nodes", { signal }),
    [ticks, resynced.value]);
  const drain = (node: ClusterNode) => act.run([node.name, node.draining], async () => {
    await call(node.draining ? "DELETE" : "PUT",
      `/api/admin/nodes/${encodeURIComponent(node.name)}/drain`);
    read.again();
    return node.draining ? texts.drainBack(node.name) : texts.drainBegun(node.name);
  });
  return <>
    <h1 tabIndex={-1}>{texts.nodes}</h1>
    <p class="lead">{texts.nodesLead}</p>
    <Came of={act} />
    <Shown of={read}>{(nodes) => <Table caption={texts.nodes} items={nodes} none={texts.nodesNone}
      columns={[
        { name: texts.node, of: (n) => <Scraped value={n.name} /> },
        { name: texts.state, of: (n) => texts.nodeStates[n.state] ?? n.state },
        { name: texts.change, of: (n) => n.roles.includes("fetcher")
          ? <Do act={act} text={n.draining ? texts.drainEnd : texts.drain} of={n.name}
            kind="plain" go={() => void drain(n)} /> : "–" },
        { name: texts.roles, of: (n) => n.roles.join(", ") },
        { name: texts.raft, of: (n) => texts.suffrages[n.suffrage] ?? "–" },
        { name: texts.shards, n: true, of: (n) => n.moving > 0
          ? texts.shardsMoving(count(n.shards), count(n.moving)) : count(n.shards) },
        { name: texts.tasks, n: true, of: (n) => count(n.open) },
        { name: texts.rate, n: true, of: (n) => about(n.pagesPerSecond) },
        { name: texts.lag, n: true, of: (n) => n.lag === null ? "–" : count(n.lag) },
        { name: texts.heard, n: true, of: (n) => duration(n.leaseAgeMillis ?? n.goneMillis) },
        { name: texts.version, of: (n) => n.version },
      ]} />}</Shown>
  </>;
}

const workStates = ["", "WAITING", "READY", "HELD", "FAILED"];

/** Background work that is open. */
export function Work() {
  const state = useEntry("state", place.value.query.get("state") ?? "");
  const list = usePage<WorkItem>("/api/admin/work", { state:
    place.value.query.get("state") || undefined });
  return <>
    <h1 tabIndex={-1}>{texts.work}</h1>
    <p class="lead">{texts.workLead}</p>
    <form class="filter" noValidate onSubmit={(e) => { e.preventDefault();
      go(address("/operators/work", state.value ? { state: state.value } : {}), true); }}>
      <Select id="state" label={texts.state} value={state}
        options={workStates.map((s) => [s, s ? texts.workStates[s] ?? s : texts.all])} />
      <button class="second">{texts.show}</button></form>
    <Shown of={list}>{(page) => <>
      <Table caption={texts.work} items={page.content} none={texts.workNone} columns={[
        { name: texts.kind, of: (w) => w.kind },
        { name: texts.state, of: (w) => texts.workStates[w.state] ?? w.state },
        { name: texts.customer, of: (w) => w.customerRef
          ? <Scraped value={w.customerRef} most={60} /> : "–" },
        { name: texts.node, of: (w) => w.node ?? "–" },
        { name: texts.made, of: (w) => when(w.createdAt) },
        { name: texts.stood, n: true, of: (w) => duration(w.stoodStillMillis) },
        { name: texts.failed, n: true, of: (w) => count(w.failures) },
        { name: texts.error, wide: true, of: (w) => <Scraped value={w.error ?? "–"} most={300} /> },
      ]} />
      <Pager of={page} at={list.at} /></>}</Shown>
  </>;
}

/** The backups that are kept. */
export function Backups() {
  const read = useLoaded((signal) => call<KeptBackup[]>("GET", "/api/admin/backups", { signal }),
    [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.backups}</h1>
    <p class="lead">{texts.backupsLead}</p>
    <p><a class="button" href="/api/admin/backup" download="shoal.backup">{texts.backupNow}</a></p>
    <p class="hint">{texts.backupHint}</p>
    <Shown of={read}>{(all) => <Table caption={texts.backups} items={all}
      none={texts.backupsNone} columns={[
        { name: texts.at, of: (b) => when(b.takenAt) },
        { name: texts.name, of: (b) => <code>{b.name}</code> },
        { name: texts.size, n: true, of: (b) => bytes(b.bytes) }]} />}</Shown>
    <p class="hint">{texts.restoreHint}</p>
  </>;
}
