// Schemas: what rows have to look like.
import { useSignal } from "@preact/signals";
import type { CommonField, Schema, SchemaInput, SchemaListEntry } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Entry, Form, Select, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { Removal } from "./removal";
import { address, go, stays } from "./route";
import { count, Fact, Scraped, visible, when } from "./show";
import { texts } from "./texts.rest";

const kinds = ["CUSTOM", "PRODUCT", "REVIEW", "ARTICLE", "JOB_POSTING", "REAL_ESTATE", "EVENT",
  "ORGANIZATION", "SERP"] as const;

/** The customer's schemas. */
export function Schemas() {
  const list = useLoaded((signal) => call<SchemaListEntry[]>("GET", "/api/schema/customer",
    { signal }), [resynced.value]);
  const fields = useLoaded((signal) => call<CommonField[]>("GET", "/api/schema/items/existing",
    { signal }), []);
  return <>
    <h1 tabIndex={-1}>{texts.schemas}</h1>
    <p class="lead">{texts.schemasLead}</p>
    <Shown of={list}>{(all) => <Table caption={texts.schemas} items={all}
      none={texts.schemasNone} columns={[
        { name: texts.name, of: (s) => <a href={address(`/schemas/${s.id}`)}>
          <Scraped value={s.name} most={100} /></a> },
        { name: texts.type, of: (s) => texts.schemaTypes[s.type] ?? s.type },
        { name: texts.version, n: true, of: (s) => count(s.version) }]} />}</Shown>
    <h2>{texts.schemaNew}</h2>
    <Save saved={(s) => go(address(`/schemas/${s.id}`))} />
    <details class="plain"><summary>{texts.commonFields}</summary>
      <Shown of={fields}>{(all) => <Table caption={texts.commonFields} items={all} none=""
        columns={[{ name: texts.field, of: (f) => <code>{f.name}</code> },
          { name: texts.type, of: (f) => f.type }]} />}</Shown></details>
  </>;
}

const example = { type: "object", properties: { title: { type: "string" },
  price: { type: "number" } }, required: ["title"] };

function Save(props: { of?: Schema; saved: (s: Schema) => void }) {
  const { of } = props;
  const name = useEntry("schema-name", of?.name ?? "");
  const type = useEntry<string>("schema-type", of?.type ?? "CUSTOM");
  const text = useEntry("schema-content", JSON.stringify(of?.content ?? example, null, 2));
  const bad = useSignal("");
  const act = useAct();
  const save = () => {
    let content: unknown;
    try {
      content = JSON.parse(text.value);
      bad.value = typeof content === "object" && content !== null ? "" : texts.schemaObject;
    } catch (e) {
      bad.value = texts.schemaJSON(e instanceof Error ? e.message : String(e));
    }
    if (bad.value) {
      document.getElementById("schema-content")?.focus();
      return;
    }
    const body: SchemaInput = { id: of?.id, name: name.value, version: of?.version ?? 1,
      type: type.value as SchemaInput["type"], content: content as Record<string, unknown>,
      description: of?.description, domainPatterns: of?.domainPatterns };
    void act.run(body, async (key) => {
      const here = stays();
      const schema = await call<Schema>("PUT", "/api/schema/customer", { key, body });
      if (here()) {
        props.saved(schema);
      }
      return texts.saved;
    });
  };
  return <Form act={act} send={save} button={texts.save} label={of ? texts.schemaChange
    : texts.schemaNew} names={{ name: texts.name, content: texts.schemaContent,
    type: texts.type }}>
    <Entry id="schema-name" label={texts.name} value={name} most={200} />
    <Select id="schema-type" label={texts.type} value={type}
      options={kinds.map((k) => [k, texts.schemaTypes[k] ?? k])} />
    <Entry id="schema-content" label={texts.schemaContent} value={text} lines={14}
      hint={texts.schemaHint} problem={bad.value || undefined} />
  </Form>;
}

/** One schema. */
export function OneSchema(props: { id: string }) {
  const read = useLoaded((signal) => call<Schema>("GET",
    `/api/schema/get/${encodeURIComponent(props.id)}`, { signal }), [props.id, resynced.value]);
  return <Shown of={read} title={texts.schema}>{(schema) => <>
    <h1 tabIndex={-1}>{texts.schema} <bdi>{visible(schema.name, 200)}</bdi></h1>
    <dl class="facts">
      <Fact name={texts.type}>{texts.schemaTypes[schema.type] ?? schema.type}</Fact>
      <Fact name={texts.version}>{count(schema.version)}</Fact>
      <Fact name={texts.changed}>{when(schema.updatedAt)}</Fact>
    </dl>
    {schema.customerRef !== null ? <>
      <h2>{texts.schemaChange}</h2>
      <Save of={schema} saved={read.again} />
      <h2>{texts.schemaRemove}</h2>
      <Removal path={`/api/schema/customer/${schema.id}`} text={texts.schemaRemove}
        done={() => go(address("/schemas"))} />
    </> : <pre class="scroll" tabIndex={0}>{JSON.stringify(schema.content, null, 2)}</pre>}
  </>}</Shown>;
}
