// Rows of a group: a table that has in memory what is seen, however many there are.
import { signal, useSignal, type Signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { Category, Group, RowReceipt } from "./schema.gen";
import { apiAddress, call, listNames, readNames } from "./api";
import { useEntry } from "./entries";
import { resynced, Shown, Trouble, useLoaded } from "./load";
import { address, arrive, go, place } from "./route";
import { count, duration, Fact, money, Scraped, visible, when } from "./show";
import { fieldsOf } from "./start";
import { texts } from "./texts";
import { building } from "./texts.builder";
import { RowReader, type Wanted } from "./reader";

/** The groups whose rows can be read: one's own, and those that others share. */
const readable = async (signal: AbortSignal) => (await Promise.all(["", "/shared"].map((whose) =>
  call<Group[]>("GET", `/api/scraper${whose}/group/list`, { signal })))).flat();

/** The groups. */
export function Groups() {
  const read = useLoaded(readable, [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.groupsTitle}</h1>
    <Shown of={read}>{(groups) => groups.length === 0
      ? <p>{texts.groupsNone} <a href={address("/")}>{texts.startTitle}</a></p>
      : <div class="scroll" tabIndex={0} role="region" aria-label={texts.groupsCaption}><table>
        <caption class="unseen">{texts.groupsCaption}</caption>
        <thead><tr><th scope="col">{texts.group}</th>
          <th scope="col" class="n">{texts.scrapers}</th><th scope="col">{texts.made}</th></tr>
        </thead>
        <tbody>{groups.map((g) => <tr key={g.id}>
          <td><a href={address(`/rows/${g.id}`)}><Scraped value={g.name} most={100} /></a></td>
          <td class="n">{count(g.scraperCount)}</td><td>{when(g.createdAt)}</td></tr>)}</tbody>
      </table></div>}</Shown>
  </>;
}

/** What the address asks for. */
function wanted(group: string): Wanted {
  const query = place.value.query;
  const said = (name: string) => query.get(name) ?? "";
  return { group, job: said("job"), scraper: said("scraper"), field: said("field"),
    op: said("op") || "eq", value: said("value"), sort: said("sort"),
    descending: said("desc") === "yes", category: said("category") };
}

/** Has the address ask for something else, too. */
function ask(change: Record<string, string>): void {
  const query = new URLSearchParams(place.value.query);
  for (const [name, value] of Object.entries(change)) {
    if (value) {
      query.set(name, value);
    } else {
      query.delete(name);
    }
  }
  go(address(place.value.path, Object.fromEntries(query)), true);
}

/** The rows of a group. */
export function Rows(props: { group: string }) {
  const want = wanted(props.group);
  const reason = JSON.stringify(want);
  const again = useSignal(0);
  const reader = useMemo(() => new RowReader(want), [reason, again.value]);
  const groups = useLoaded(readable, []);
  const name = groups.value?.find((g) => g.id === props.group)?.name ?? "";
  // What was seen of fields stays while the rows are filtered: some may have none then.
  const seen = useMemo(() => signal<string[]>([]), [props.group]);
  useEffect(() => {
    void reader.need(0);
    return () => reader.end();
  }, [reader]);
  const fields = fieldsOf([], [...new Set([...seen.value, ...reader.fields.value])]);
  useEffect(() => {
    if (fields.length > seen.value.length) {
      seen.value = fields;
    }
  });
  useEffect(() => arrive(texts.product), [name]); // the heading says it
  const hidden = new Set(readNames(place.value.query.get("hide") ?? ""));
  const columns = fields.filter((f) => !hidden.has(f));
  const n = reader.known.value;
  return <>
    <h1 tabIndex={-1}>{texts.rowsTitle} <bdi>{visible(name, 200)}</bdi></h1>
    {(want.job || want.scraper) && <p>{want.job ? texts.rowsOfRun : texts.rowsOfScraper}{" "}
      <a href={address(place.value.path)}>{texts.rowsOfAll}</a></p>}
    <Choice want={want} fields={fields} hidden={hidden} reader={reader} />
    {reader.error.value && <Trouble error={reader.error.value}
      again={() => reader.lookAgain()} />}
    <p role="status">{!reader.begun.value ? texts.loading : n === 0 ? texts.rowsNone
      : texts.rowsKnown(count(n), reader.more.value)}</p>
    {n === 0 && reader.begun.value && !reader.error.value && <WhyNone reader={reader} />}
    {n > 0 && <Table reader={reader} columns={columns} again={() => { again.value++; }} />}
    {reader.cut.value && <p class="note">{texts.rowsCut}</p>}
  </>;
}

/** Why a comparison with a number finds nothing, if the field has texts in place of numbers. */
function WhyNone(props: { reader: RowReader }) {
  const text = useLoaded((signal) => props.reader.uncompared(signal), [props.reader]).value;
  if (text === undefined) {
    return null;
  }
  return <div class="note" role="status">
    <p>{texts.rowsTexts} <Scraped value={text} most={100} /></p>
    <p class="hint">{texts.rowsTextsHow(building.rules.CURRENCY_CONVERT!,
      building.rules.REGEX_CLEAN!)}</p>
  </div>;
}

const formats = ["csv", "xlsx", "jsonl", "parquet"];

/** The categories of a group, where it has some. */
function Categories(props: { group: string; chosen: string }) {
  const read = useLoaded((signal) => call<Category[]>("GET",
    `/api/scraper/data/group/${props.group}/categories`, { signal }), [resynced.value]);
  if (!read.value || read.value.length === 0) {
    return null;
  }
  return <div><label for="category">{texts.category}</label>
    <select id="category" value={props.chosen}
      onChange={(e) => ask({ category: e.currentTarget.value })}>
      <option value="">{texts.categoryNone}</option>
      {read.value.map((c) => <option key={c.id} value={c.id!}>{visible(c.name, 60)}</option>)}
    </select></div>;
}

/** The fields to choose from, with one that is chosen already. */
const optionsOf = (fields: string[], chosen: string) =>
  [...chosen && !fields.includes(chosen) ? [chosen] : [], ...fields].map((f) =>
    <option key={f} value={f}>{f}</option>);

/** The filter, as it is entered. */
function Filter(props: { want: Wanted; fields: string[] }) {
  const { want, fields } = props;
  const field = useEntry("field", want.field);
  const op = useEntry("op", want.op);
  const value = useEntry("value", want.value);
  const apply = (event: SubmitEvent) => {
    event.preventDefault();
    ask({ field: field.value, op: field.value && op.value, value: field.value && value.value });
  };
  return <form class="filter" onSubmit={apply}>
    <div><label for="field">{texts.filterField}</label>
      <select id="field" value={field.value} required={value.value !== ""}
        onChange={(e) => { field.value = e.currentTarget.value; }}>
        <option value="">{texts.filterClear}</option>
        {optionsOf(fields, field.value)}</select></div>
    <div><label for="op">{texts.filterOp}</label>
      <select id="op" value={op.value} onChange={(e) => { op.value = e.currentTarget.value; }}>
        {Object.entries(texts.ops).map(([name, text]) =>
          <option key={name} value={name}>{text}</option>)}</select></div>
    <div><label for="value">{texts.filterValue}</label>
      <input id="value" value={value.value} autocomplete="off"
        onInput={(e) => { value.value = e.currentTarget.value; }} /></div>
    <button class="second">{texts.filterSet}</button>
  </form>;
}

/** What a click opens and Escape closes. */
function Menu(props: { name: string; children: ComponentChildren }) {
  return <details onKeyDown={(event) => {
    if (event.key === "Escape") {
      event.currentTarget.open = false;
      event.currentTarget.querySelector("summary")!.focus();
    }
  }}><summary>{props.name}</summary>{props.children}</details>;
}

function Choice(props: { want: Wanted; fields: string[]; hidden: Set<string>;
  reader: RowReader; }) {
  const { want, fields, hidden, reader } = props;
  const toggle = (field: string, on: boolean) => {
    const off = new Set(hidden);
    if (on) {
      off.delete(field);
    } else {
      off.add(field);
    }
    ask({ hide: listNames([...off]) });
  };
  return <div class="choice">
    <Filter key={`${want.field} ${want.op} ${want.value}`} want={want} fields={fields} />
    <div class="filter">
      <Categories group={want.group} chosen={want.category} />
      <div><label for="sort">{texts.sort}</label>
        <select id="sort" value={want.sort}
          onChange={(e) => ask({ sort: e.currentTarget.value })}>
          <option value="">{texts.sortNone}</option>
          {optionsOf(fields, want.sort)}</select></div>
      {want.sort && <label class="check"><input type="checkbox" checked={want.descending}
        onChange={(e) => ask({ desc: e.currentTarget.checked ? "yes" : "" })} />
      {texts.sortDesc}</label>}
      <Menu name={texts.columns}>
        <fieldset><legend class="unseen">{texts.columns}</legend>
          {fields.map((f) => <label class="check" key={f}>
            <input type="checkbox" checked={!hidden.has(f)}
              onChange={(e) => toggle(f, e.currentTarget.checked)} />
            <Scraped value={f} most={60} /></label>)}</fieldset></Menu>
      <Menu name={texts.exported}>
        <ul class="links">{formats.map((format) => <li key={format}>
          <a download href={apiAddress("/api/scraper/data/export", { ...reader.query, format,
            // Rows that were not read yet may have fields that nobody has seen.
            without: hidden.size > 0 ? listNames([...hidden]) : undefined })}>
            {format}</a></li>)}</ul></Menu>
    </div>
  </div>;
}

const height = 36; // of a row, in pixels; app.css has the same
const spare = 10; // rows above and below what is seen
const tallest = 24_000_000; // pixels: browsers draw nothing that is much taller

function Table(props: { reader: RowReader; columns: string[]; again: () => void }) {
  const { reader, columns } = props;
  const top = useSignal(0);
  const room = useSignal(600);
  const box = useRef<HTMLDivElement>(null);
  const open = useSignal<number | undefined>(undefined);
  const at = useSignal(0); // the row that had the focus
  const wanted = useEntry("row", "");
  useEffect(() => {
    const watch = new ResizeObserver(() => { room.value = box.current?.clientHeight ?? 600; });
    watch.observe(box.current!);
    return () => watch.disconnect();
  }, []);
  const n = reader.known.value;
  const whole = n * height, drawn = Math.min(whole, tallest);
  // Where all rows would be taller than what is drawn, a pixel of the scroll bar stands for more.
  const scale = drawn > room.value ? (whole - room.value) / (drawn - room.value) : 1;
  const seen = Math.min(top.value * scale, Math.max(0, whole - room.value));
  const first = Math.max(0, Math.floor(seen / height) - spare);
  const last = Math.min(n, Math.ceil((seen + room.value) / height) + spare);
  const above = Math.max(0, Math.min(top.value, drawn) - (seen - first * height));
  const below = Math.max(0, drawn - above - (last - first) * height);
  const goTo = async (event: SubmitEvent) => {
    event.preventDefault();
    const index = Math.max(1, Math.floor(Number(wanted.value)) || 1) - 1;
    await reader.reach(index);
    // the table is as tall as what was read once it is drawn
    await new Promise((drawn) => { requestAnimationFrame(() => requestAnimationFrame(drawn)); });
    const all = reader.known.value * height, high = Math.min(all, tallest);
    box.current?.scrollTo(0, index * height * (high - room.value)
      / Math.max(1, all - room.value));
  };
  useEffect(() => {
    void reader.look(first, last);
  }, [reader, first, last, n]);
  // One row is a stop of the Tab key: behind a million of them nothing could be reached.
  const stop = at.value >= first && at.value < last ? at.value
    : Math.min(last - 1, Math.ceil(seen / height));
  const step = (event: KeyboardEvent) => {
    const line = (event.target as Element).closest("tr");
    const next = event.key === "ArrowDown" ? line?.nextElementSibling
      : event.key === "ArrowUp" ? line?.previousElementSibling : undefined;
    const button = next?.querySelector("button");
    if (button) {
      event.preventDefault();
      button.focus();
    }
  };
  reader.changed.value; // rows that have come are shown
  const lines = [];
  for (let i = first; i < last; i++) {
    const row = reader.row(i);
    lines.push(<tr key={i} aria-rowindex={i + 2}>
      <th scope="row" class="n"><button type="button" class="plain" aria-disabled={!row}
        aria-label={`${texts.rowDetails}: ${count(i + 1)}`} tabIndex={i === stop ? 0 : -1}
        onFocus={() => { at.value = i; }}
        onClick={() => { open.value = row && i; }}>{count(i + 1)}</button></th>
      {columns.map((c) => <td key={c}>{row && <Scraped value={row[c]} />}</td>)}
    </tr>);
  }
  return <>
    <div class="scroll rows" ref={box} tabIndex={0} role="region" aria-label={texts.rowsRegion}
      onKeyDown={step} onScroll={(e) => { top.value = e.currentTarget.scrollTop; }}>
      <table aria-rowcount={reader.more.value ? -1 : n + 1}>
        <thead><tr aria-rowindex={1}><th scope="col" class="n">{texts.rowNumber}</th>
          {columns.map((c) => <th scope="col" key={c}><Scraped value={c} most={60} /></th>)}
        </tr></thead>
        <tbody>
          <tr class="gap" aria-hidden="true"><td style={{ height: `${above}px` }} /></tr>
          {lines}
          <tr class="gap" aria-hidden="true">
            <td style={{ height: `${below}px` }} /></tr>
        </tbody>
      </table>
    </div>
    <form class="filter" onSubmit={(event) => void goTo(event)}>
      <div><label for="row">{texts.goToRow}</label>
        <input id="row" type="number" min={1} required inputMode="numeric" value={wanted.value}
          onInput={(e) => { wanted.value = e.currentTarget.value; }} /></div>
      <button class="second">{texts.goTo}</button>
      <button type="button" class="second" onClick={props.again}>{texts.rowsAgain}</button>
    </form>
    {open.value !== undefined && <Details reader={reader} index={open as Signal<number>}
      close={() => { open.value = undefined; }} />}
  </>;
}

const mostOfValue = 20_000; // characters

/** All of a row, in a dialog that the browser keeps the focus in. */
function Details(props: { reader: RowReader; index: Signal<number>; close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    dialog.current?.showModal();
    dialog.current?.querySelector("h2")?.focus(); // its first button is at the end of a long row
  }, []);
  const row = props.reader.row(props.index.value) ?? {};
  return <dialog ref={dialog} aria-label={texts.rowDetails} onClose={props.close}>
    <h2 tabIndex={-1}>{texts.rowDetails}</h2>
    <dl class="all">{Object.entries(row).map(([name, value]) => <div key={name}>
      <dt><Scraped value={name} /></dt>
      <dd><Scraped value={value} most={mostOfValue} lines /></dd></div>)}</dl>
    {typeof row._rowId === "string" && <Receipt row={row._rowId} />}
    <button type="button" onClick={() => dialog.current?.close()}>{texts.close}</button>
  </dialog>;
}

/** Where a row comes from, once that is asked for. */
function Receipt(props: { row: string }) {
  const asked = useSignal(false);
  const read = useLoaded(async (signal) => asked.value
    ? call<RowReceipt>("GET", `/api/scraper/data/${props.row}/receipt`, { signal }) : undefined,
  [props.row, asked.value]);
  if (!asked.value) {
    return <p><button type="button" class="second" onClick={() => { asked.value = true; }}>
      {texts.receipt}</button></p>;
  }
  const { value, error, again } = read;
  return <section><h3>{texts.receipt}</h3>
    {error && <Trouble error={error} again={again} />}
    {!value && !error && <p role="status">{texts.loading}</p>}
    {value && <>
      <p><Scraped value={value.finalUrl ?? value.url} most={500} /></p>
      <dl class="facts">
        <Fact name={texts.receiptTier}>{value.tier}</Fact>
        <Fact name={texts.receiptStatus}>{String(value.status)}</Fact>
        <Fact name={texts.receiptTook}>{duration(value.durationMillis)}</Fact>
        <Fact name={texts.receiptBytes}>{count(value.bytes)}</Fact>
        <Fact name={texts.rows}>{count(value.rows)}</Fact>
        {value.price && <Fact name={texts.receiptPrice}>
          {money(value.price.amountMicros)}</Fact>}
      </dl>
      <ol>{value.tries.map((t, i) => <li key={i}>{t.tier}: {t.code ?? texts.receiptGood}
        {t.status !== null && ` (${t.status})`}</li>)}</ol>
    </>}
  </section>;
}
