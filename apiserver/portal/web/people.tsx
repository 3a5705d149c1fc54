// Customers, as operators see them.
import { useSignal } from "@preact/signals";
import type { CustomerAccount, CustomerListEntry } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Came, Do, Entry, Form, Pager, Table, useAct, usePage } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { Removal } from "./removal";
import { address, go, place } from "./route";
import { count, Fact, money, parseMoney, Scraped, visible, when } from "./show";
import { texts } from "./texts.operators";

const stateOf = (c: CustomerListEntry) => c.erasedAt ? texts.erased
  : c.removedAt ? texts.removed : c.blockedAt ? texts.blocked : texts.active;

/** All customers. */
export function People() {
  const q = place.value.query.get("q") ?? "";
  const typed = useEntry("q", q);
  const list = usePage<CustomerListEntry>("/api/admin/customers", { q: q || undefined });
  return <>
    <h1 tabIndex={-1}>{texts.customers}</h1>
    <form class="filter" role="search" noValidate onSubmit={(e) => { e.preventDefault();
      go(address("/operators/customers", typed.value ? { q: typed.value } : {}), true); }}>
      <Entry id="q" label={texts.search} value={typed} type="search" />
      <button class="second">{texts.show}</button></form>
    <Shown of={list}>{(page) => <>
      <Table caption={texts.customers} items={page.content} none={texts.customersNone} columns={[
        { name: texts.customer, of: (c) => <a href={address("/operators/customer",
          { ref: c.customerUniqueRef })}><Scraped value={c.customerUniqueRef} most={60} /></a> },
        { name: texts.email, of: (c) => <Scraped value={c.email || "–"} most={60} /> },
        { name: texts.name, of: (c) => <Scraped value={`${c.firstname} ${c.lastname}`.trim()
          || "–"} most={60} /> },
        { name: texts.state, of: (c) => stateOf(c) },
        { name: texts.made, of: (c) => when(c.createdAt) }]} />
      <Pager of={page} at={list.at} /></>}</Shown>
  </>;
}

/** One customer. */
export function OneCustomer() {
  const ref = place.value.query.get("ref") ?? "";
  const path = `/api/admin/customers/${encodeURIComponent(ref)}`;
  const read = useLoaded((signal) => call<CustomerAccount>("GET", path, { signal }),
    [ref, resynced.value]);
  const act = useAct();
  const block = (blocked: boolean) => act.run(["block", blocked], async () => {
    await call(blocked ? "DELETE" : "PUT", `${path}/block`);
    read.again();
    return blocked ? texts.unblockDone : texts.blockDone;
  });
  return <Shown of={read} title={texts.customer}>{({ customer, blockedBy, wallet, counts }) => <>
    <h1 tabIndex={-1}>{texts.customer} <bdi>{visible(customer.customerUniqueRef, 100)}</bdi></h1>
    <dl class="facts">
      <Fact name={texts.state}>{stateOf(customer)}</Fact>
      <Fact name={texts.email}><Scraped value={customer.email || "–"} /></Fact>
      <Fact name={texts.balance}>{money(wallet.balanceMicros, wallet.currency)}</Fact>
      <Fact name={texts.freeLeft}>{count(wallet.freeRequestsRemaining)}</Fact>
      <Fact name={texts.groups}>{count(counts.groups)}</Fact>
      <Fact name={texts.scrapers}>{count(counts.scrapers)}</Fact>
      <Fact name={texts.keys}>{count(counts.keys)}</Fact>
      <Fact name={texts.openRuns}>{count(counts.openRuns)}</Fact>
      <Fact name={texts.runsLately}>{count(counts.runsLast30d)}</Fact>
    </dl>
    {blockedBy && <p class="note">{texts.blockedBy} <Scraped value={blockedBy} /></p>}
    <Adjust path={path} changed={read.again} />
    <h2>{texts.block}</h2>
    <p>{texts.blockHint}</p>
    <p><Do act={act} text={customer.blockedAt ? texts.unblock : texts.block}
      go={() => void block(!!customer.blockedAt)} /></p>
    <Came of={act} />
    <h2>{texts.remove}</h2>
    <p>{texts.removeHint}</p>
    <Removal path={path} text={texts.remove} done={() => go(address("/operators/customers"))} />
  </>}</Shown>;
}

function Adjust(props: { path: string; changed: () => void }) {
  const amount = useEntry(`${props.path}#adjust`, "");
  const note = useEntry(`${props.path}#note`, "");
  const problem = useSignal("");
  const act = useAct();
  const book = () => {
    const negative = /^\s*[-−]/.test(amount.value);
    const micros = parseMoney(amount.value.replace(/^\s*[-−]/, ""));
    problem.value = micros === undefined || Number.isNaN(micros) ? texts.amountBad : "";
    if (problem.value) {
      document.getElementById("adjust")?.focus();
      return;
    }
    const body = { amountMicros: negative ? -micros! : micros!, note: note.value || undefined };
    void act.run(body, async (key) => {
      await call("POST", `${props.path}/wallet/adjustments`, { key, body });
      amount.value = note.value = "";
      props.changed();
      return texts.adjusted;
    });
  };
  return <>
    <h2>{texts.adjust}</h2>
    <Form act={act} send={book} button={texts.adjustDo} label={texts.adjust}
      names={{ amountMicros: texts.amount, note: texts.note }}>
      <Entry id="adjust" label={texts.amount} value={amount} short decimal hint={texts.adjustHint}
        problem={problem.value || undefined} />
      <Entry id="note" label={texts.note} value={note} hint={texts.noteHint} />
    </Form>
  </>;
}
