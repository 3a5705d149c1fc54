// What the pages that come later are made of: tables, forms, lists by page and by cursor.
import { signal, useSignal, type Signal } from "@preact/signals";
import { createContext, type ComponentChildren } from "preact";
import { useContext, useEffect, useRef } from "preact/hooks";
import { call, Once, type Query, type Refused } from "./api";
import { refused, resynced, Shown, Trouble, useLoaded, type Loaded } from "./load";
import { address, place } from "./route";
import { count, visible } from "./show";
import { texts } from "./texts";
import { told } from "./words";

/** No page stands here. */
export function Missing() {
  return <><h1 tabIndex={-1}>{texts.missing}</h1>
    <p>{texts.missingHow} <a href={address("/")}>{texts.navStart}</a></p></>;
}

/** Links to places. Where there is little room they are one line, with where the page is in view. */
export function Places(props: { name: string; class?: string;
  places: [path: string, text: string, here: boolean][]; }) {
  const list = useRef<HTMLUListElement>(null);
  const at = props.places.findIndex(([, , here]) => here);
  const names = props.places.map(([, text]) => text).join();
  useEffect(() => {
    const line = list.current!;
    const sized = new ResizeObserver(() => {
      const link = line.children[at] as HTMLElement | undefined;
      if (link) {
        line.scrollLeft = link.offsetLeft - (line.clientWidth - link.offsetWidth) / 2;
      }
    });
    sized.observe(line);
    return () => sized.disconnect();
  }, [at, names]);
  return <nav class={props.class} aria-label={props.name}><ul ref={list}>
    {props.places.map(([path, text, here]) => <li key={path}><a href={address(path)}
      aria-current={here ? "page" : undefined}>{text}</a></li>)}
  </ul></nav>;
}

/** The pages beside one another, above what they show. */
export function Beside(props: { name: string; places: [path: string, text: string][] }) {
  const at = place.value.path;
  return <Places name={props.name} class="beside" places={props.places.map(([path, text]) => [path,
    text, at === path || at.startsWith(path + "/") && path !== "/operators"])} />;
}

/** A column of a table: its name, and what stands in it. */
export interface Column<T> {
  name: string;
  n?: boolean; // numbers
  wide?: boolean; // sentences
  of: (item: T) => ComponentChildren;
}

/** A table, or a sentence where it would be empty. */
export function Table<T>(props: { caption: string; items: readonly T[]; columns: Column<T>[];
  none: string; }) {
  const { caption, items, columns } = props;
  if (items.length === 0) {
    return <p>{props.none}</p>;
  }
  const kind = (column: Column<T>) => column.n ? "n" : column.wide ? "wide" : undefined;
  return <div class="scroll" tabIndex={0} role="region" aria-label={caption}><table>
    <caption class="unseen">{caption}</caption>
    <thead><tr>{columns.map((c) => <th scope="col" key={c.name} class={c.n ? "n" : undefined}>
      {c.name}</th>)}</tr></thead>
    <tbody>{items.map((item, i) => <tr key={i}>{columns.map((c) =>
      <td key={c.name} class={kind(c)}>{c.of(item)}</td>)}</tr>)}</tbody>
  </table></div>;
}

/** What a person has the API do, with what came of it. */
export interface Act {
  busy: boolean;
  error?: Refused;
  done: string;
  /** Does something under a key that stays until one knows what came of it. */
  run: (said: unknown, what: (key: string) => Promise<string | void>) => Promise<boolean>;
}

/** An act. What is under way is not begun again. Its buttons are no disabled ones meanwhile: these
 * would lose the focus. */
export function useAct(): Act {
  const busy = useSignal(false);
  const error = useSignal<Refused | undefined>(undefined);
  const done = useSignal("");
  const once = useRef(new Once()).current;
  return { busy: busy.value, error: error.value, done: done.value, run: async (said, what) => {
    if (busy.peek()) {
      return false;
    }
    busy.value = true;
    error.value = undefined;
    done.value = "";
    try {
      done.value = await once.send(said, what) ?? "";
      once.renew();
      return true;
    } catch (e) {
      error.value = refused(e);
      return false;
    } finally {
      busy.value = false;
    }
  } };
}

/** What came of an act. Names of fields are those that the page shows, and money is money. */
export function Came(props: { of: Act; names?: Record<string, string> }) {
  const { error, busy, done } = props.of;
  return <>
    {error && <Trouble error={named(error, props.names ?? {})} />}
    <p role="status" class={done ? "note" : ""}>{busy ? texts.working : done}</p>
  </>;
}

/** A refusal in the words of the page. */
export function named(error: Refused, names: Record<string, string>): Refused {
  const changed = Object.create(error) as Refused;
  return error.items.length === 0 ? error : Object.defineProperty(changed, "message",
    { value: error.items.map((item) => told(item, names)).join(" ") });
}

// What is wrong with fields of a form, by their labels.
const Wrong = createContext<ReadonlyMap<string, string>>(new Map());

type Kind = "text" | "email" | "url" | "search" | "number" | "date" | "datetime-local" | "month";

const mostPasted = 50_000; // characters that are left to the browser

/** Takes a long text that is pasted. A browser that does it by itself makes an element of each of its
 * lines, and stands still for as long. */
export function paste(event: ClipboardEvent): void {
  const field = event.currentTarget as HTMLTextAreaElement;
  const text = event.clipboardData?.getData("text/plain") ?? "";
  if (text.length > mostPasted && field.maxLength < 0) {
    event.preventDefault();
    field.setRangeText(text, field.selectionStart, field.selectionEnd, "end");
    field.dispatchEvent(new Event("input", { bubbles: true }));
  }
}

/** A field to enter something in. */
export function Entry(props: { id: string; label: string; value: Signal<string>; hint?: string;
  type?: Kind; short?: boolean; lines?: number; problem?: string; most?: number;
  decimal?: boolean; list?: string; required?: boolean; }) {
  const { id, value, hint } = props;
  const refused = useContext(Wrong).get(props.label); // which the form tells aloud
  const problem = props.problem ?? refused;
  const shared = { id, value: value.value, maxLength: props.most, required: props.required,
    "aria-invalid": problem ? true : undefined,
    "aria-describedby": [hint && `${id}-hint`, problem && `${id}-problem`].filter(Boolean)
      .join(" ") || undefined,
    autocomplete: "off" as const,
    onInput: (e: InputEvent) => {
      value.value = (e.currentTarget as HTMLInputElement | HTMLTextAreaElement).value;
    } };
  return <div>
    <label for={id}>{props.label}</label>
    {props.lines ? <textarea {...shared} rows={props.lines} spellcheck={false} onPaste={paste} />
      : <input {...shared} type={props.type ?? "text"} list={props.list}
        inputMode={props.decimal ? "decimal" : undefined}
        class={props.short ? "short" : undefined} />}
    {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
    {problem && <p class="trouble" role={refused ? undefined : "alert"} id={`${id}-problem`}>{problem}</p>}
  </div>;
}

/** A choice of one of some values. What is shown as chosen is the value, unless it is told. */
export function Select(props: { id: string; label: string; value: Signal<string>; shown?: string;
  options: readonly [value: string, text: string][]; hint?: string; }) {
  const { id, value, hint } = props;
  return <div>
    <label for={id}>{props.label}</label>
    <select id={id} value={props.shown ?? value.value} aria-describedby={hint && `${id}-hint`}
      onChange={(e) => { value.value = e.currentTarget.value; }}>
      {props.options.map(([v, text]) => <option key={v} value={v}>
        {visible(text, 80)}</option>)}
    </select>
    {hint && <p class="hint" id={`${id}-hint`}>{hint}</p>}
  </div>;
}

/** A form. It is sent when a person says so, and tells what came of it. */
export function Form(props: { act: Act; send: () => void; button: string; label?: string;
  names?: Record<string, string>; children: ComponentChildren; }) {
  const wrong = new Map((props.act.error?.items ?? []).flatMap((item) => {
    const label = props.names?.[item.field ?? ""];
    return label ? [[label, told(item, props.names)]] : [];
  }));
  const form = useRef<HTMLFormElement>(null);
  useEffect(() => {
    if (props.act.error) {
      form.current!.querySelector<HTMLElement>("[aria-invalid=true]")?.focus();
    }
  }, [props.act.error]);
  return <form ref={form} noValidate aria-label={props.label} onSubmit={(event) => {
    event.preventDefault();
    props.send();
  }}>
    <Wrong.Provider value={wrong}>{props.children}</Wrong.Provider>
    <p><button aria-disabled={props.act.busy}>{props.button}</button></p>
    <Came of={props.act} names={props.names} />
  </form>;
}

/** A button that has something done. */
export function Do(props: { act: Act; text: string; of?: string; kind?: "second" | "danger" | "plain";
  go: () => void; }) {
  return <button type="button" class={props.kind ?? "second"} aria-disabled={props.act.busy}
    aria-label={props.of ? `${props.text}: ${visible(props.of, 100)}` : undefined}
    onClick={props.go}>{props.text}</button>;
}

interface PageOf<T> { content: T[]; totalElements: number; totalPages: number }

/** A list of which the API answers pages. The address says which one. */
export function usePage<T>(path: string, query: Query, name = "page"): Loaded<PageOf<T>> & {
  at: number } {
  const at = Math.max(0, Number(place.value.query.get(name)) || 0);
  return { ...useLoaded((signal) => call<PageOf<T>>("GET", path,
    { query: { ...query, page: at, size: 50 }, signal }),
  [path, JSON.stringify(query), at, resynced.value]), at };
}

/** Leads through the pages of a list. */
export function Pager(props: { of: PageOf<unknown>; at: number; name?: string }) {
  const { of, at } = props;
  const to = (page: number) => {
    const query = new URLSearchParams(place.value.query);
    query.set(props.name ?? "page", String(page));
    return address(place.value.path, Object.fromEntries(query));
  };
  return of.totalPages < 2 ? null : <nav class="pager" aria-label={texts.pagesOfList}>
    {at > 0 && <a href={to(at - 1)} rel="prev">{texts.pageBefore}</a>}
    <span>{texts.pageOf(count(at + 1), count(of.totalPages), count(of.totalElements))}</span>
    {at + 1 < of.totalPages && <a href={to(at + 1)} rel="next">{texts.pageNext}</a>}
  </nav>;
}

interface CursorPage<T> { items: T[]; nextCursor: string | null }

/** A list as far as it was read. What comes late is of the list that it was asked for. */
interface List<T, P> {
  first: P;
  items: Signal<T[]>;
  next: Signal<string | null>;
  ask: (query: { cursor?: string }, signal?: AbortSignal) => Promise<P>;
}

/** A list that is read on by a cursor, as far as a person wants. It begins anew whenever one of the
 * reasons changes. */
export function Cursor<T, P extends CursorPage<T> = CursorPage<T>>(props: { reasons: unknown[];
  ask: List<T, P>["ask"]; children: (items: T[], first: P) => ComponentChildren; }) {
  const { ask } = props;
  const read = useLoaded<List<T, P>>(async (cancel) => {
    const first = await ask({}, cancel);
    return { first, items: signal(first.items), next: signal(first.nextCursor), ask };
  }, props.reasons);
  return <Shown of={read}>{(list) => <>
    {props.children(list.items.value, list.first)}
    <More key={list} of={list} /></>}</Shown>;
}

function More<T, P extends CursorPage<T>>(props: { of: List<T, P> }) {
  const { items, next, ask } = props.of;
  const act = useAct();
  const on = () => act.run(next.value, async () => {
    const page = await ask({ cursor: next.value! });
    items.value = [...items.value, ...page.items];
    next.value = page.nextCursor;
  });
  return <>
    {next.value && <p><Do act={act} text={texts.more} go={() => void on()} /></p>}
    <Came of={act} />
  </>;
}

