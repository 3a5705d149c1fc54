// The prices of pages, as operators set them.
import { useSignal } from "@preact/signals";
import type { PriceTable, PriceTableRow } from "./schema.gen";
import { call } from "./api";
import { Came, Do, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { count, Fact, money, parseMoney, Scraped, visible, when } from "./show";
import { texts } from "./texts.operators";

const path = "/api/admin/prices";

/** What is entered of a row, in place of what it has. */
interface Entered { price?: string; enabled?: boolean }

/** All prices. What is entered stays while they are read again. */
export function PriceSet() {
  const read = useLoaded((signal) => call<PriceTable>("GET", path, { signal }), [resynced.value]);
  const entered = useSignal<Record<string, Entered>>({});
  const sure = useSignal(false); // the changes are looked at
  const problem = useSignal(""); // the key of a row with no amount, or that nothing is entered
  const act = useAct();
  const enter = (row: PriceTableRow, change: Entered) => {
    entered.value = { ...entered.value, [row.rowKey]: { ...entered.value[row.rowKey], ...change } };
    sure.value = false;
    problem.value = "";
  };
  const look = (now: PriceTable) => {
    const bad = now.rows.findIndex((row) => Number.isNaN(microsOf(row, entered.value)));
    problem.value = bad >= 0 ? now.rows[bad]!.rowKey : changed(now, entered.value).length === 0
      ? nothing : "";
    sure.value = problem.value === "";
    document.getElementById(`price-${bad}`)?.focus();
  };
  const set = async (now: PriceTable) => {
    const body = { version: now.version, rows: now.rows.map((row) => after(row, entered.value)) };
    if (await act.run(body, async (key) => {
      await call("PUT", path, { key, body });
      return texts.pricesDone;
    })) {
      entered.value = {};
    }
    sure.value = false;
    read.again(); // where they were refused, somebody else may have set some
  };
  return <>
    <h1 tabIndex={-1}>{texts.prices}</h1>
    <p class="lead">{texts.pricesLead}</p>
    <p class="hint">{texts.pricesKeep}</p>
    <Shown of={read}>{(now) => <>
      <dl class="facts">
        <Fact name={texts.version}>{count(now.version)}</Fact>
        <Fact name={texts.changed}>{when(now.changedAt)}</Fact>
        <Fact name={texts.changedBy}><Scraped value={now.changedBy || "–"} most={60} /></Fact>
      </dl>
      <form noValidate aria-label={texts.prices} onSubmit={(event) => {
        event.preventDefault();
        look(now);
      }}>
        <Rows now={now} entered={entered.value} problem={problem.value} enter={enter} />
        {problem.value && <p class="trouble" role="alert">{problem.value === nothing
          ? texts.pricesSame : texts.pricesBad}</p>}
        {!sure.value && <p><button disabled={act.busy}>{texts.pricesLook}</button></p>}
      </form>
      {sure.value && <div class="card" role="group" aria-label={texts.pricesSure}>
        <p><strong>{texts.pricesSure}</strong></p>
        <Changes now={now} entered={entered.value} />
        <p class="actions">
          <Do act={act} text={texts.pricesSet} kind="danger" go={() => void set(now)} />
          <Do act={act} text={texts.pricesBack} go={() => { sure.value = false; }} />
        </p>
      </div>}
      <Came of={act} names={Object.fromEntries(now.rows.flatMap((row, i) => [
        [`rows[${i}].sellingPriceMicros`, `${texts.priceNew} (${row.label})`],
        [`rows[${i}].enabled`, `${texts.priceOn} (${row.label})`]]))} />
    </>}</Shown>
  </>;
}

const nothing = "-"; // no row has this key

function Rows(props: { now: PriceTable; entered: Record<string, Entered>; problem: string;
  enter: (row: PriceTableRow, change: Entered) => void; }) {
  const { now, entered, enter } = props;
  const nameOf = (what: string, row: PriceTableRow) =>
    `${what}: ${visible(row.label, 100)}, ${visible(row.rowKey, 100)}`;
  return <Table caption={texts.prices} none={texts.pricesNone}
    items={now.rows.map((row, i) => ({ row, i, said: entered[row.rowKey] }))} columns={[
      { name: texts.priceOf, of: ({ row }) => <Scraped value={row.label} most={100} /> },
      { name: texts.priceNew, of: ({ row, i, said }) => <input id={`price-${i}`} class="short"
        inputMode="decimal" autocomplete="off" aria-label={nameOf(texts.priceNew, row)}
        aria-invalid={props.problem === row.rowKey || undefined}
        value={said?.price ?? String(row.sellingPriceMicros / 1e6)}
        onInput={(e) => enter(row, { price: e.currentTarget.value })} /> },
      { name: texts.priceOn, of: ({ row, said }) => <input type="checkbox"
        aria-label={nameOf(texts.priceOn, row)} checked={said?.enabled ?? row.enabled}
        onChange={(e) => enter(row, { enabled: e.currentTarget.checked })} /> },
      { name: texts.priceNow, n: true, of: ({ row }) => money(row.sellingPriceMicros) },
      { name: texts.kind, of: ({ row }) => texts.priceKinds[row.kind] ?? row.kind },
      { name: texts.priceKey, of: ({ row }) => <Scraped value={row.rowKey} most={100} /> },
    ]} />;
}

/** What is entered, in micros; NaN: no amount. */
function microsOf(row: PriceTableRow, entered: Record<string, Entered>): number {
  const price = entered[row.rowKey]?.price;
  return price === undefined ? row.sellingPriceMicros : parseMoney(price) ?? NaN;
}

/** A row with what is entered. */
const after = (row: PriceTableRow, entered: Record<string, Entered>): PriceTableRow => ({ ...row,
  sellingPriceMicros: microsOf(row, entered),
  enabled: entered[row.rowKey]?.enabled ?? row.enabled });

/** The rows that become others, before and after. */
const changed = (now: PriceTable, entered: Record<string, Entered>) => now.rows
  .map((row) => ({ row, next: after(row, entered) }))
  .filter(({ row, next }) => row.sellingPriceMicros !== next.sellingPriceMicros
    || row.enabled !== next.enabled);

function Changes(props: { now: PriceTable; entered: Record<string, Entered> }) {
  return <ul>{changed(props.now, props.entered).map(({ row, next }) => <li key={row.rowKey}>
    <strong><Scraped value={row.label} most={100} /></strong>{" "}
    (<Scraped value={row.rowKey} most={100} />):
    {row.sellingPriceMicros !== next.sellingPriceMicros
      && " " + texts.priceFrom(money(row.sellingPriceMicros), money(next.sellingPriceMicros))}
    {row.enabled !== next.enabled && " " + (next.enabled ? texts.priceBack : texts.priceGone)}
  </li>)}</ul>;
}
