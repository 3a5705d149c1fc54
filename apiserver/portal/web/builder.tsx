// Where a person picks fields on a page: what stands alike is found by the API, and makes rows.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo, useRef } from "preact/hooks";
import type { FieldInput, PageCandidate, PageChoice, PagePick, PagePickInput, PagePreview,
  Scraper } from "./schema.gen";
import { call, newKey, Once, type Refused } from "./api";
import { change, draft, listsPages, mostName, newName } from "./draft";
import { useEntry } from "./entries";
import { show, type Showing } from "./frame";
import { ChooseGroup, type Chosen, groupOf } from "./group";
import { refused, Trouble } from "./load";
import { isWhole, itemsOf, keepRecipe, type Kind, mappingOf, newRecipe, type Picked, readRecipe,
  type Recipe, type Rule, rulesOf } from "./recipe";
import { address, go, place, stays } from "./route";
import { asText, count, money, Scraped, when } from "./show";
import { estimate, fieldsOf, NameTrouble } from "./start";
import { texts } from "./texts";
import { building } from "./texts.builder";

const kinds: Kind[] = ["MULTIPLE_PRODUCTS", "SINGLE_PRODUCT"];

/** The page of the address in the query. */
export function Builder() {
  const url = place.value.query.get("url") ?? "";
  return <Building key={url} url={url} />;
}

function Building(props: { url: string }) {
  const { url } = props;
  const page = useSignal<PagePreview | undefined>(undefined);
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const read = async (useCache: boolean) => {
    busy.value = true;
    error.value = undefined;
    await call<PagePreview>("POST", "/api/scraper-simple/page", { query: { useCache },
      body: { url } }).then((found) => { page.value = found; },
      (e: unknown) => { error.value = refused(e); });
    busy.value = false;
  };
  useEffect(() => { // who comes by a link of others is asked before it costs something
    if (url && (draft.value?.addresses.includes(url) || readRecipe(url))) {
      void read(true);
    }
  }, []);
  return <>
    <h1 tabIndex={-1}>{building.title}</h1>
    <p class="lead">{building.on} <Scraped value={url} most={500} /></p>
    {error.value && <Trouble error={error.value} again={() => void read(true)} />}
    <p role="status">{busy.value && texts.reading}</p>
    {page.value ? <Picking url={url} page={page.value} again={() => void read(false)} />
      : !busy.value && !error.value && url !== "" && <>
        <p>{building.readCost}</p>
        <button type="button" onClick={() => void read(true)}>{building.read}</button></>}
    <p><a href={address("/")}>{texts.back}</a></p>
  </>;
}

function Picking(props: { url: string; page: PagePreview; again: () => void }) {
  const { url, page } = props;
  const recipe = useSignal<Recipe>(readRecipe(url)
    ?? newRecipe(url, !listsPages(begun(url)?.addresses ?? [])));
  const made = useSignal<PagePick | undefined>(undefined);
  const choices = useSignal<Record<string, PageChoice[]>>({}); // by the selector of a field
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const frame = useRef<HTMLIFrameElement>(null);
  const showing = useRef<Showing | undefined>(undefined);
  const asking = useRef<AbortController | undefined>(undefined);
  const picks = useRef(Promise.resolve()); // one begins when the one before has its answer

  const keep = (next: Recipe) => {
    recipe.value = next;
    keepRecipe(next);
  };
  const ask = async (next: Recipe, element?: number) => {
    asking.current?.abort();
    const cancel = asking.current = new AbortController();
    busy.value = true;
    error.value = undefined;
    keep(next); // what is changed meanwhile goes on from here
    const body: PagePickInput = { url, type: next.type, itemsConfig: itemsOf(next.fields),
      postProcessRules: rulesOf(next.fields), element: element ?? null };
    try {
      const answer = await call<PagePick>("POST", "/api/scraper-simple/page/pick",
        { body, signal: cancel.signal });
      const last = answer.itemsConfig.at(-1);
      if (element !== undefined && last) {
        choices.value = { ...choices.value, [last.selector]: answer.choices };
      }
      const now = recipe.value.fields; // with what was typed meanwhile
      keep({ ...recipe.value, fields: answer.itemsConfig.map((f, i) => now[i] !== next.fields[i]
        ? now[i]! : { ...f, rule: now[i]?.rule }) });
      made.value = answer;
    } catch (e) {
      if (cancel.signal.aborted) {
        return;
      }
      error.value = refused(e); // and the recipe is there to be mended
    }
    busy.value = false;
  };
  useEffect(() => {
    const box = frame.current!;
    const fill = () => {
      showing.current?.end();
      showing.current = show(box, page.nodes, (element) => {
        picks.current = picks.current.then(() => ask(recipe.value, element));
      });
      showing.current.mark(made.value?.matches ?? []);
    };
    fill();
    box.addEventListener("load", fill); // where an empty page comes later
    void ask(recipe.value);
    return () => {
      box.removeEventListener("load", fill);
      showing.current?.end();
      asking.current?.abort();
    };
  }, [page]);
  useEffect(() => showing.current?.mark(made.value?.matches ?? []), [made.value]);

  const set = (change: Partial<Recipe>) => void ask({ ...recipe.value, ...change });
  const { type, fields, follow } = recipe.value;
  return <>
    <p class="hint">{page.chargedMicros === 0 ? building.costsNothing(page.tier)
      : building.costs(page.tier, money(page.chargedMicros))}{" "}
      {building.kept(when(page.expiresAt))}</p>
    {page.cut && <p class="note">{building.cut}</p>}
    <p>{building.lead}</p>
    <div class="build">
      <div>
        <iframe ref={frame} class="page" sandbox="allow-same-origin" title={building.frame} />
        <p class="hint">{building.keys}</p>
      </div>
      <div>
        <fieldset class="kind"><legend>{building.kind}</legend>
          {kinds.map((kind) =>
            <label class="check" key={kind}><input type="radio" name="kind" value={kind}
              checked={type === kind} onChange={() => set({ type: kind })} />
            {kind === "SINGLE_PRODUCT" ? building.one : building.many}</label>)}</fieldset>
        <h2>{building.fields}</h2>
        {fields.length === 0 && <p>{building.none}</p>}
        <ol class="fields">{fields.map((f, i) => <OneField key={i} place={i} field={f}
          makesRows={i === 0 && type === "MULTIPLE_PRODUCTS"}
          choices={choices.value[f.selector] ?? []}
          values={() => (made.value?.rows ?? []).map((row) => asText(row[f.name]))}
          set={(field, typing) => (typing ? keep : ask)({ ...recipe.value,
            fields: fields.map((old, k) => k === i ? field : old) })}
          remove={() => set({ fields: fields.filter((_, k) => k !== i) })} />)}</ol>
        {error.value && <Trouble error={error.value}
          again={error.value.code === "not_found" ? props.again : undefined} />}
        <p role="status">{busy.value ? building.working : made.value && fields.length > 0
          ? building.rowsOf(count(made.value.rows.length), count(made.value.rowCount)) : ""}</p>
      </div>
    </div>
    {made.value && made.value.rows.length > 0 && <Rows rows={made.value.rows}
      first={fields.map((f) => f.name)} />}
    <h2>{building.goesOn}</h2>
    <p>{page.pagination ? building.goesOnBy[page.pagination.type] ?? building.goesOnElse
      : building.goesOnNot}</p>
    {page.pagination && <label class="check"><input type="checkbox" checked={follow}
      onChange={(e) => set({ follow: e.currentTarget.checked })} />{building.follow}</label>}
    <Saving url={url} disabled={busy.value || !made.value?.rows.length
      || !fields.every((f) => isWhole(f.rule))} scraper={() => ({ type,
      sourceConfig: { url, pagination: follow && type === "MULTIPLE_PRODUCTS"
        ? page.pagination : null },
      itemsConfig: itemsOf(fields), postProcessRules: rulesOf(fields), config: {},
      schema: null })} />
    <Proposals of={page.candidates} begin={(c) => set({ type: c.type as Kind,
      fields: c.itemsConfig })} />
  </>;
}

/** Names, of each kind of rule, of what it needs. */
const params: Record<string, string[]> = { REGEX_CLEAN: ["pattern", "replacement"],
  CURRENCY_CONVERT: ["from", "to"], ENUM_MAP: ["mapping", "default"] };

/** What rules begin with, by their kind. */
const begins: Record<Rule["kind"], (values: string[]) => Rule["params"]> = {
  REGEX_CLEAN: () => ({ pattern: "\\s+", replacement: " " }),
  CURRENCY_CONVERT: () => ({ from: "EUR", to: "USD" }),
  ENUM_MAP: (values) => ({ mapping: mappingOf(values), default: "" }) };

function OneField(props: { place: number; field: Picked; makesRows: boolean;
  choices: PageChoice[]; values: () => string[]; remove: () => void;
  set: (field: Picked, typing?: boolean) => void; }) {
  const { place, field } = props;
  const { rule } = field;
  const id = `field-${place}`;
  const chosen = field.kind === "ATTR" ? `@${field.attr}` : field.kind;
  const options = new Map<string, string>([[chosen, ""]]);
  props.choices.forEach((c) => options.set(c.kind === "ATTR" ? `@${c.attr}` : c.kind, c.value));
  options.set("EXISTS", "");
  const label = (option: string) => option === "TEXT" ? building.text
    : option === "EXISTS" ? building.exists : building.attribute(option.slice(1));
  const rename = (name: string, typing: boolean) => props.set({ ...field, name }, typing);
  const param = (name: string, value: string, typing: boolean) => props.set({ ...field,
    rule: { kind: rule!.kind, params: { ...rule!.params, [name]: value } } }, typing);
  const ruled = (kind: Rule["kind"] | "") => props.set({ ...field,
    rule: kind ? { kind, params: begins[kind](props.values()) } : undefined });
  return <li data-field={place % 6}>
    <p class="hint">{building.field(count(place + 1))}
      {props.makesRows && <>, {building.first}</>}: <code><Scraped value={field.selector} /></code>
    </p>
    <div class="filter">
      <div><label for={`${id}-name`}>{building.name}</label>
        <input id={`${id}-name`} value={field.name} maxLength={256} autocomplete="off"
          onInput={(e) => rename(e.currentTarget.value, true)}
          onChange={(e) => rename(e.currentTarget.value, false)} /></div>
      <div><label for={`${id}-what`}>{building.what}</label>
        <select id={`${id}-what`} value={chosen} onChange={(e) => {
          const to = e.currentTarget.value;
          props.set(to.startsWith("@") ? { ...field, kind: "ATTR", attr: to.slice(1) }
            : { name: field.name, selector: field.selector, kind: to as FieldInput["kind"], rule });
        }}>{[...options].map(([option]) => <option key={option} value={option}>
            {label(option)}</option>)}</select></div>
      <div><label for={`${id}-rule`}>{building.rule}</label>
        <select id={`${id}-rule`} value={rule?.kind ?? ""}
          onChange={(e) => ruled(e.currentTarget.value as Rule["kind"] | "")}>
          {Object.entries(building.rules).map(([kind, text]) =>
            <option key={kind} value={kind}>{text}</option>)}</select></div>
      {rule && (params[rule.kind] ?? []).map((name) => <div key={name}>
        <label for={`${id}-${name}`}>{building.params[name]}</label>
        {name === "mapping" ? <Mapping id={`${id}-${name}`} rule={rule}
          set={(text, typing) => param(name, text, typing)} />
          : <input id={`${id}-${name}`} value={rule.params[name]} autocomplete="off"
            onInput={(e) => param(name, e.currentTarget.value, true)}
            onChange={(e) => param(name, e.currentTarget.value, false)} />}</div>)}
      <button type="button" class="plain" aria-label={building.remove(field.name)}
        onClick={props.remove}>{building.removeShort}</button>
    </div>
  </li>;
}

function Mapping(props: { id: string; rule: Rule;
  set: (text: string, typing: boolean) => void; }) {
  const { id, rule } = props;
  const bad = !isWhole(rule);
  return <>
    <textarea id={id} rows={4} value={rule.params.mapping} spellcheck={false}
      aria-invalid={bad || undefined}
      aria-describedby={`${id}-hint${bad ? ` ${id}-problem` : ""}`}
      onInput={(e) => props.set(e.currentTarget.value, true)}
      onChange={(e) => props.set(e.currentTarget.value, false)} />
    <p class="hint" id={`${id}-hint`}>{building.mappingHint}</p>
    {bad && <p class="trouble" role="alert" id={`${id}-problem`}>{building.mappingBad}</p>}
  </>;
}

const mostShown = 14; // fields

function Rows(props: { rows: Record<string, unknown>[]; first: string[] }) {
  const fields = fieldsOf(props.rows, props.first).slice(0, mostShown);
  return <section><h2>{building.rows}</h2>
    <div class="scroll" tabIndex={0} role="region" aria-label={building.rowsRegion}>
      <table><thead><tr>{fields.map((name) => <th scope="col" key={name}>
        <Scraped value={name} most={60} /></th>)}</tr></thead>
      <tbody>{props.rows.map((row, i) => <tr key={i}>{fields.map((name) => <td key={name}>
        <Scraped value={row[name]} most={120} /></td>)}</tr>)}</tbody></table></div>
  </section>;
}

/** The draft that has an address. */
const begun = (url: string) => draft.value?.addresses.includes(url) ? draft.value : undefined;

/** Saves what was picked under a name, and asks what a run will cost. */
function Saving(props: { url: string; disabled: boolean;
  scraper: () => Partial<Scraper> | Record<string, unknown>; }) {
  const own = useMemo(() => begun(props.url)?.name ?? newName(props.url), []);
  const said = useEntry<string | undefined>("scraper-name", undefined); // in place of its own
  const name = said.value ?? own;
  const saved = useRef(new Once()).current;
  const before = begun(props.url);
  const group = useEntry<Chosen>("group", { group: before?.group, newGroup: before?.newGroup });
  const error = useSignal<Refused | undefined>(undefined);
  const busy = useSignal(false);
  const save = async (event: Event) => {
    event.preventDefault();
    if (busy.value || props.disabled) {
      return;
    }
    busy.value = true;
    error.value = undefined;
    const here = stays();
    const was = draft.value;
    const now = begun(props.url) ?? { text: props.url, addresses: [props.url],
      saveKey: newKey(), launchKey: newKey() };
    try {
      const groupRef = await groupOf(group.value);
      group.value = { group: groupRef };
      const body = { ...props.scraper(), name, groupRef };
      const scraper = await saved.send(body, (key) => call<Scraper>("PUT", "/api/scraper",
        { key, body }));
      change(was, { ...now, name, group: groupRef, scraper, proposals: undefined,
        estimate: await estimate(scraper, now.addresses), following: undefined,
        launchKey: newKey() });
      if (here()) {
        go(address("/launch"));
      }
    } catch (e) {
      error.value = refused(e);
    }
    busy.value = false;
  };
  return <form onSubmit={save}>
    <label for="scraper-name">{texts.name}</label>
    <input id="scraper-name" value={name} maxLength={mostName} required
      onInput={(e) => { said.value = e.currentTarget.value; }} />
    <ChooseGroup of={group.value} busy={busy.value} choose={(next) => { group.value = next; }} />
    {error.value && <NameTrouble error={error.value} from={props.url} take={(free) => {
      said.value = free;
      error.value = undefined;
    }} />}
    <p class="actions"><button disabled={props.disabled}
      aria-disabled={busy.value}>{building.save}</button></p>
    <p role="status">{busy.value && texts.using}</p>
  </form>;
}

/** What was found without a pick, as far as one can go on picking on it. */
function Proposals(props: { of: PageCandidate[]; begin: (of: PageCandidate) => void }) {
  const fit = props.of.filter((c) => c.type === "MULTIPLE_PRODUCTS" || c.type === "SINGLE_PRODUCT");
  return <section><h2>{building.proposals}</h2>
    {fit.length === 0 && <p>{building.proposalsNone}</p>}
    <ol class="fields">{fit.map((c, i) => <li key={i}>
      <p><Scraped value={fieldsOf(c.sampleData, c.itemsConfig.map((f) => f.name)).join(", ")} />
      </p>
      <p class="hint"><Scraped value={Object.entries(c.sampleData[0] ?? {}).map(([name, value]) =>
        `${name}: ${asText(value)}`).join(", ")} most={200} /></p>
      <button type="button" class="second" aria-label={`${building.begin}: ${count(i + 1)}`}
        onClick={() => props.begin(c)}>{building.begin}</button></li>)}</ol>
  </section>;
}
