// The prices of pages, as operators set them.
import { useSignal } from "@preact/signals";
import type { PriceTable, PriceTableRow } from "./schema.gen";
import { call } from "./api";
import { enteredSince, useEntry } from "./entries";
import { Came, Do, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { count, entered as written, Fact, money, parseMoney, Scraped, visible,
  when } from "./show";
import { texts } from "./texts.operators";

const path = "/api/admin/prices";

/** What is entered of a row, in place of what it has. */
interface Entered { price?: string; enabled?: boolean; gone?: boolean }

/** All prices. What is entered stays while they are read again. */
export function PriceSet() {
  const read = useLoaded((signal) => call<PriceTable>("GET", path, { signal }), [resynced.value]);
  const entered = useEntry<Record<string, Entered>>("prices", {});
  const added = useEntry<PriceTableRow[]>("prices-added", []); // rows of domains that are not set yet
  const sure = useSignal(false); // the changes are looked at
  const problem = useSignal(""); // the key of a row with no amount, or that nothing is entered
  const act = useAct();
  const enter = (row: PriceTableRow, change: Entered) => {
    entered.value = { ...entered.value, [row.rowKey]: { ...entered.value[row.rowKey], ...change } };
    sure.value = false;
    problem.value = "";
  };
  const add = (row: PriceTableRow) => {
    added.value = [...added.value, row];
    sure.value = false;
    problem.value = "";
  };
  const drop = (row: PriceTableRow) => {
    const fresh = has(added.value, row.rowKey);
    enter(row, fresh ? { price: undefined, enabled: undefined }
      : { gone: !entered.value[row.rowKey]?.gone });
    added.value = added.value.filter((other) => other.rowKey !== row.rowKey);
  };
  const look = (all: PriceTableRow[], fresh: PriceTableRow[]) => {
    const bad = all.findIndex((row) => !entered.value[row.rowKey]?.gone
      && Number.isNaN(microsOf(row, entered.value)));
    problem.value = bad >= 0 ? all[bad]!.rowKey
      : fresh.length === 0 && changed(all, entered.value).length === 0 ? nothing : "";
    sure.value = problem.value === "";
    document.getElementById(`price-${bad}`)?.focus();
  };
  const set = async (version: number, all: PriceTableRow[]) => {
    const body = { version, rows: left(all, entered.value)
      .map((row) => after(row, entered.value)) };
    const sent = { entered: entered.value, added: added.value };
    if (await act.run(body, async (key) => {
      await call("PUT", path, { key, body });
      return texts.pricesDone;
    })) {
      entered.value = enteredSince(entered.value, sent.entered);
      added.value = added.value.filter((row) => !sent.added.includes(row));
    }
    sure.value = false;
    read.again(); // where they were refused, somebody else may have set some
  };
  return <>
    <h1 tabIndex={-1}>{texts.prices}</h1>
    <p class="lead">{texts.pricesLead}</p>
    <p class="hint">{texts.pricesKeep}</p>
    <Shown of={read}>{(now) => {
      const fresh = added.value.filter((row) => !has(now.rows, row.rowKey));
      const all = [...now.rows, ...fresh];
      return <>
        <dl class="facts">
          <Fact name={texts.version}>{count(now.version)}</Fact>
          <Fact name={texts.changed}>{when(now.changedAt)}</Fact>
          <Fact name={texts.changedBy}><Scraped value={now.changedBy || "–"} most={60} /></Fact>
        </dl>
        <form noValidate aria-label={texts.prices} onSubmit={(event) => {
          event.preventDefault();
          look(all, fresh);
        }}>
          <Rows all={all} entered={entered.value} problem={problem.value} enter={enter}
            drop={drop} />
          {problem.value && <p class="trouble" role="alert">{problem.value === nothing
            ? texts.pricesSame : texts.pricesBad(written(150))}</p>}
          {!sure.value && <p><button aria-disabled={act.busy}>{texts.pricesLook}</button></p>}
        </form>
        {sure.value && <div class="card" role="group" aria-label={texts.pricesSure}>
          <p><strong>{texts.pricesSure}</strong></p>
          <Changes all={all} fresh={fresh} entered={entered.value} />
          <p class="actions">
            <Do act={act} text={texts.pricesSet} kind="danger"
              go={() => void set(now.version, all)} />
            <Do act={act} text={texts.pricesBack} go={() => { sure.value = false; }} />
          </p>
        </div>}
        <Came of={act} names={Object.fromEntries(left(all, entered.value).flatMap((row, i) => [
          [`rows[${i}].rowKey`, `${texts.domain} (${row.label})`],
          [`rows[${i}].sellingPriceMicros`, `${texts.priceNew} (${row.label})`],
          [`rows[${i}].enabled`, `${texts.priceOn} (${row.label})`]]))} />
        <AddDomain all={all} add={add} />
        {fresh.length > 0 && <p><button type="button" onClick={() => {
          added.value = [];
          sure.value = false;
        }}>{texts.domainsBack}</button></p>}
      </>;
    }}</Shown>
  </>;
}

/** Enters a domain that is to have a price of its own. It is set with the others. */
function AddDomain(props: { all: PriceTableRow[]; add: (row: PriceTableRow) => void }) {
  const domain = useEntry("domain-name", "");
  const price = useEntry("domain-price", "");
  const problem = useSignal("");
  return <form noValidate aria-label={texts.domainAdd} onSubmit={(event) => {
    event.preventDefault();
    const name = domain.value.trim().toLowerCase();
    const micros = parseMoney(price.value) ?? NaN;
    problem.value = !/^[a-z0-9-]+(\.[a-z0-9-]+)+$/.test(name) ? texts.domainBad
      : has(props.all, `domain:${name}`) ? texts.domainThere
        : Number.isNaN(micros) ? texts.pricesBad(written(150)) : "";
    if (problem.value) {
      return;
    }
    props.add({ rowKey: `domain:${name}`, kind: "DOMAIN", label: name.slice(0, 100),
      sellingPriceMicros: micros, enabled: true });
    domain.value = price.value = "";
  }}>
    <h2>{texts.domainAdd}</h2>
    <p class="hint">{texts.domainLead}</p>
    <div class="filter choice">
      <div><label for="domain-name">{texts.domain}</label>
        <input id="domain-name" autocomplete="off" spellcheck={false} value={domain.value}
          onInput={(e) => { domain.value = e.currentTarget.value; }} /></div>
      <div><label for="domain-price">{texts.domainPrice}</label>
        <input id="domain-price" class="short" inputMode="decimal" autocomplete="off"
          value={price.value} onInput={(e) => { price.value = e.currentTarget.value; }} /></div>
      <button>{texts.domainDo}</button>
    </div>
    {problem.value && <p class="trouble" role="alert">{problem.value}</p>}
  </form>;
}

const has = (rows: PriceTableRow[], key: string) => rows.some((row) => row.rowKey === key);

const nothing = "-"; // no row has this key

interface Row { row: PriceTableRow; said: Entered | undefined }

function Rows(props: { all: PriceTableRow[]; entered: Record<string, Entered>; problem: string;
  enter: (row: PriceTableRow, change: Entered) => void; drop: (row: PriceTableRow) => void; }) {
  const { all, entered, enter, drop } = props;
  const nameOf = (what: string, row: PriceTableRow) =>
    `${what}: ${visible(row.label, 100)}, ${visible(row.rowKey, 100)}`;
  return <Table caption={texts.prices} none={texts.pricesNone}
    items={all.map((row, i) => ({ row, i, said: entered[row.rowKey] }))} columns={[
      { name: texts.priceOf, of: ({ row }) => <Scraped value={row.label} most={100} /> },
      { name: texts.priceNew, of: ({ row, i, said }) => <input id={`price-${i}`} class="short"
        inputMode="decimal" autocomplete="off" disabled={said?.gone}
        aria-label={nameOf(texts.priceNew, row)}
        aria-invalid={props.problem === row.rowKey || undefined}
        value={said?.price ?? written(row.sellingPriceMicros)}
        onInput={(e) => enter(row, { price: e.currentTarget.value })} /> },
      { name: texts.priceOn, of: ({ row, said }) => <input type="checkbox"
        disabled={said?.gone} aria-label={nameOf(texts.priceOn, row)}
        checked={said?.enabled ?? row.enabled}
        onChange={(e) => enter(row, { enabled: e.currentTarget.checked })} /> },
      { name: texts.priceNow, n: true, of: ({ row }) => money(row.sellingPriceMicros) },
      { name: texts.kind, of: ({ row }) => texts.priceKinds[row.kind] ?? row.kind },
      ...all.some((row) => row.kind === "DOMAIN") ? [{ name: texts.domainAway,
        of: ({ row, said }: Row) => row.kind === "DOMAIN" && <button type="button"
          class="plain" aria-label={nameOf(said?.gone ? texts.domainKeep
            : texts.domainDrop, row)} onClick={() => drop(row)}>
          {said?.gone ? texts.domainKeep : texts.domainDrop}</button> }] : [],
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

/** The rows that are not to be removed. */
const left = (all: PriceTableRow[], entered: Record<string, Entered>) =>
  all.filter((row) => !entered[row.rowKey]?.gone);

/** The rows that become others, before and after. */
const changed = (all: PriceTableRow[], entered: Record<string, Entered>) => all
  .map((row) => ({ row, next: after(row, entered) }))
  .filter(({ row, next }) => row.sellingPriceMicros !== next.sellingPriceMicros
    || row.enabled !== next.enabled || entered[row.rowKey]?.gone);

function Changes(props: { all: PriceTableRow[]; fresh: PriceTableRow[];
  entered: Record<string, Entered>; }) {
  const { all, fresh, entered } = props;
  const kept = all.filter((row) => !has(fresh, row.rowKey));
  return <ul>
    {changed(kept, entered).map(({ row, next }) => <li key={row.rowKey}>
      <Named row={row} />
      {entered[row.rowKey]?.gone ? " " + texts.domainGone : <>
      {row.sellingPriceMicros !== next.sellingPriceMicros
        && " " + texts.priceFrom(money(row.sellingPriceMicros), money(next.sellingPriceMicros))}
      {row.enabled !== next.enabled && " " + (next.enabled ? texts.priceBack : texts.priceGone)}
      </>}
    </li>)}
    {fresh.map((row) => after(row, entered)).map((row) => <li key={row.rowKey}>
      <Named row={row} /> {texts.domainNew(money(row.sellingPriceMicros))}
      {!row.enabled && " " + texts.priceGone}
    </li>)}
  </ul>;
}

const Named = ({ row }: { row: PriceTableRow }) => <>
  <strong><Scraped value={row.label} most={100} /></strong>{" "}
  (<Scraped value={row.rowKey} most={100} />):</>;
