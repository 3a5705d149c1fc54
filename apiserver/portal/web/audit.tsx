// The audit trail.
import type { AuditTrailEntry } from "./schema.gen";
import { apiAddress, call } from "./api";
import { useEntry } from "./entries";
import { Cursor, Entry, Table } from "./kit";
import { resynced } from "./load";
import { address, go, place } from "./route";
import { asText, count, Scraped, when } from "./show";
import { texts } from "./texts.operators";

/** What was done by whom. */
export function Audit() {
  const said = (name: string) => place.value.query.get(name) ?? "";
  const actor = useEntry("actor", said("actor"));
  const customer = useEntry("customer", said("customer"));
  const query = { actor: said("actor") || undefined, customer: said("customer") || undefined,
    order: "newest" };
  const look = () => go(address("/operators/audit", {
    ...actor.value && { actor: actor.value },
    ...customer.value && { customer: customer.value } }), true);
  return <>
    <h1 tabIndex={-1}>{texts.audit}</h1>
    <p class="lead">{texts.auditLead}</p>
    <form class="filter" role="search" noValidate
      onSubmit={(e) => { e.preventDefault(); look(); }}>
      <Entry id="actor" label={texts.actor} value={actor} type="search" />
      <Entry id="customer" label={texts.customer} value={customer} type="search" />
      <button class="second">{texts.show}</button></form>
    <Cursor<AuditTrailEntry> reasons={[JSON.stringify(query), resynced.value]}
      ask={(at, signal) => call("GET", "/api/admin/audit",
        { query: { ...query, ...at, limit: 50 }, signal })}>
      {(entries) => <Table caption={texts.audit} items={entries} none={texts.auditNone} columns={[
        { name: texts.number, n: true, of: (e) => count(e.number) },
        { name: texts.at, of: (e) => when(e.at) },
        { name: texts.action, of: (e) => e.count > 1 ? `${e.action} (${count(e.count)})`
          : e.action },
        { name: texts.actor, of: (e) => <Scraped value={e.actor.subject || "–"} most={60} /> },
        { name: texts.from, of: (e) => <Scraped value={e.actor.address || "–"} most={60} /> },
        { name: texts.customer, of: (e) => <Scraped value={e.customerUniqueRef || "–"}
          most={60} /> },
        { name: texts.changes, wide: true, of: (e) => <>{e.changes.map((c, i) =>
          <details class="plain" key={i}><summary><Scraped value={c.record} most={100} /></summary>
            <p>{texts.before}: <Scraped value={asText(c.before) || "–"} most={2000} /></p>
            <p>{texts.after}: <Scraped value={asText(c.after) || "–"} most={2000} /></p>
          </details>)}{e.moreChanges > 0 && texts.moreChanges(count(e.moreChanges))}</> }]} />}
    </Cursor>
    <p class="actions"><a class="button" download href={apiAddress("/api/admin/audit",
      { ...query, format: "csv" })}>{texts.auditExport}</a></p>
  </>;
}
