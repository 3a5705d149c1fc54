// The wallet: what is in it, how it is filled, and what has come and gone.
import { useSignal } from "@preact/signals";
import type { Price, StartedTopUp, TopUpStatus, Transaction, Wallet as Of } from "./schema.gen";
import { apiAddress, call } from "./api";
import { useEntry } from "./entries";
import { Cursor, Entry, Form, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { address, stays } from "./route";
import { count, Fact, money, monthOf, parseMoney, Scraped, when } from "./show";
import { topUp, wallet } from "./store";
import { texts } from "./texts.account";

/** The balance, a top-up and the ledger. */
export function Wallet() {
  const read = useLoaded((signal) => call<Of>("GET", "/api/wallet", { signal }),
    [resynced.value, wallet.value?.balanceMicros]);
  return <>
    <h1 tabIndex={-1}>{texts.wallet}</h1>
    <Shown of={read}>{(now) => <>
      <dl class="facts">
        <Fact name={texts.balance}>{money(now.balanceMicros, now.currency)}</Fact>
        <Fact name={texts.freeLeft}>{count(now.freeRequestsRemaining)}</Fact>
        <Fact name={texts.lowBelow}>{money(now.lowBalanceThresholdMicros, now.currency)}</Fact>
      </dl>
      {now.lowBalance && <p class="note">{texts.balanceLow}</p>}
      {!now.walletBillingEnabled && <p class="note">{texts.billingOff}</p>}
    </>}</Shown>
    <h2>{texts.topUp}</h2>
    {takesPayments ? <TopUp /> : <p>{texts.topUpNone}</p>}
    <h2>{texts.ledger}</h2>
    <Cursor<Transaction> reasons={[resynced.value, topUp.value]}
      ask={(at, signal) => call("GET", "/api/wallet/transactions/all", { query: { ...at, limit: 50 }, signal })}>
      {(entries) => <Ledger entries={entries} />}</Cursor>
    <p class="actions">
      <a class="button" download href={apiAddress("/api/wallet/transactions/all",
        { format: "csv" })}>{texts.ledgerExport}</a></p>
  </>;
}

/** Whether somebody takes payments here, as the server has said in the page. */
export const takesPayments =
  document.querySelector<HTMLMetaElement>('meta[name="payments"]')?.content === "yes";

const keptTopUp = "shoal-topup"; // the session of the newest checkout, over the way there and back

function TopUp() {
  const amount = useEntry("amount", "");
  const problem = useSignal("");
  const act = useAct();
  const session = useSignal(sessionStorage.getItem(keptTopUp));
  const pay = () => {
    const micros = parseMoney(amount.value);
    const cents = (micros ?? NaN) / 10_000;
    problem.value = Number.isInteger(cents) ? "" : texts.amountBad;
    if (problem.value) {
      document.getElementById("amount")?.focus();
      return;
    }
    void act.run(cents, async (key) => {
      const here = stays();
      const begun = await call<StartedTopUp>("POST", "/api/wallet/topup",
        { key, body: { amountCents: cents } });
      sessionStorage.setItem(keptTopUp, begun.sessionId);
      amount.value = "";
      if (here()) {
        location.assign(begun.url);
      }
      return texts.topUpLeads;
    });
  };
  return <section>
    {session.value && <Paid session={session.value} forget={() => {
      sessionStorage.removeItem(keptTopUp);
      session.value = null;
    }} />}
    <Form act={act} send={pay} button={texts.topUpPay} label={texts.topUp}
      names={{ amountCents: texts.amount }}>
      <Entry id="amount" label={texts.amount} value={amount} hint={texts.amountHint} short decimal
        problem={problem.value || undefined} />
    </Form>
  </section>;
}

/** What became of the newest checkout. */
function Paid(props: { session: string; forget: () => void }) {
  const told = topUp.value?.sessionId === props.session ? topUp.value.status : undefined;
  const read = useLoaded((signal) => call<TopUpStatus>("GET",
    `/api/wallet/topup/${encodeURIComponent(props.session)}`, { signal }),
  [props.session, told, resynced.value]);
  return <Shown of={read}>{({ status }) => <p class="note" role="status">
    {texts.topUpStates[status] ?? status}{" "}
    <button type="button" class="plain" onClick={props.forget}>
      {texts.understood}</button></p>}</Shown>;
}

/** The ledger. A phone shows its first columns, so the amounts are among them. */
function Ledger(props: { entries: Transaction[] }) {
  return <Table caption={texts.ledger} items={props.entries} none={texts.ledgerNone} columns={[
    { name: texts.at, of: (t) => when(t.createdAt) },
    { name: texts.amountOf, n: true, of: (t) => t.amountMicros === 0 && t.freeRequestsDelta !== 0
      ? texts.freePages(count(t.freeRequestsDelta)) : money(t.amountMicros) },
    { name: texts.type, of: (t) => texts.entryTypes[t.type] ?? t.type },
    { name: texts.state, of: (t) => texts.entryStates[t.status] ?? t.status },
    { name: texts.balanceAfter, n: true, of: (t) => t.balanceAfterMicros === null ? "–"
      : money(t.balanceAfterMicros) },
    { name: texts.what, wide: true, of: (t) => <What of={t} /> }]} />;
}

function What(props: { of: Transaction }) {
  const { of } = props;
  return <>
    {of.lines.map((line, i) => <div key={i}>{texts.line(count(line.pages), line.label,
      money(line.unitPriceMicros))}{line.freePages > 0
      && `, ${texts.lineFree(count(line.freePages))}`}</div>)}
    {of.source && <Scraped value={texts.sources[of.source] ?? of.source} most={120} />}
    {of.jobId && of.scraperId && <div>
      <a href={address(`/runs/${of.scraperId}/${of.jobId}`)}>{texts.seeRun}</a></div>}
  </>;
}

const mostMonths = 24; // that are offered

/** The statements of months. */
export function Statements() {
  const now = new Date();
  const months = Array.from({ length: mostMonths }, (_, i) =>
    new Date(now.getFullYear(), now.getMonth() - i, 1));
  const path = (month: Date, format: string) => apiAddress(`/api/wallet/statements/${
    month.getFullYear()}-${String(month.getMonth() + 1).padStart(2, "0")}`, { format });
  const what = useEntry("month", "");
  const act = useAct();
  const other = () => {
    if (!/^\d{4}-\d{2}$/.test(what.value)) {
      void act.run(what.value, async () => texts.monthBad);
      return;
    }
    location.assign(apiAddress(`/api/wallet/statements/${what.value}`, { format: "html" }));
  };
  return <>
    <h1 tabIndex={-1}>{texts.statements}</h1>
    <p class="lead">{texts.statementsLead}</p>
    <Table caption={texts.statements} items={months} none="" columns={[
      { name: texts.month, of: (m) => monthOf(m) },
      { name: texts.statement, of: (m) => <>
        <a href={path(m, "html")} target="_blank" rel="noopener"
          aria-label={`${texts.statementPage}: ${monthOf(m)}`}>{texts.statementPage}</a>{" · "}
        <a href={path(m, "csv")} download
          aria-label={`${texts.statementTable}: ${monthOf(m)}`}>{texts.statementTable}</a></> }]} />
    <Form act={act} send={other} button={texts.statementOpen} label={texts.statementOther}>
      <Entry id="month" label={texts.statementOther} value={what} type="month" short />
    </Form>
  </>;
}

/** What pages cost. */
export function Prices() {
  const read = useLoaded((signal) => call<Price[]>("GET", "/api/wallet/prices", { signal }),
    [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.prices}</h1>
    <p class="lead">{texts.pricesLead}</p>
    <Shown of={read}>{(all) => <Table caption={texts.prices} items={all} none={texts.pricesNone}
      columns={[
        { name: texts.priceOf, of: (p) => <><Scraped value={p.label} />
          {all.some((other) => other.label === p.label && other.rowKey !== p.rowKey)
            && <> (<Scraped value={p.rowKey} most={100} />)</>}</> },
        { name: texts.type, of: (p) => texts.priceKinds[p.kind] ?? p.kind },
        { name: texts.priceEach, n: true, of: (p) => money(p.sellingPriceMicros) },
        { name: texts.priceMany(count(1000)), n: true, of: (p) => money(p.sellingPriceMicros * 1000) },
      ]} />}</Shown>
  </>;
}
