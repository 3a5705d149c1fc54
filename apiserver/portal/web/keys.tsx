// API keys: made, shown once, and revoked.
import { useSignal } from "@preact/signals";
import type { GeneratedKey, Key, KeyList } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Came, Do, Entry, Form, Select, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { Fact, Scraped, visible, when } from "./show";
import { Secret } from "./secret";
import { texts } from "./texts.account";

/** The keys of a customer. */
export function Keys() {
  const list = useLoaded((signal) => call<KeyList>("GET", "/api/key/list", { signal }),
    [resynced.value]);
  const made = useSignal<GeneratedKey | undefined>(undefined);
  return <>
    <h1 tabIndex={-1}>{texts.keys}</h1>
    <p class="lead">{texts.keysLead}</p>
    {made.value && <Secret title={texts.keyMade} secret={made.value.key}
      close={() => { made.value = undefined; }}>
      <dl class="facts"><Fact name={texts.name}><Scraped value={made.value.name} /></Fact>
        <Fact name={texts.scope}>{texts.scopes[made.value.scope] ?? made.value.scope}</Fact></dl>
    </Secret>}
    <Shown of={list}>{({ keys }) => <KeyTable keys={keys} changed={list.again} />}</Shown>
    <h2>{texts.keyNew}</h2>
    <Make made={(key) => { made.value = key; list.again(); }} />
    <h2>{texts.access}</h2>
    <p>{texts.accessHint}</p>
    <ul>
      <li><a href="/sign-in/programs">{texts.programs}</a></li>
      <li><a href="/sign-in/passkeys">{texts.passkeys}</a></li>
      <li><a href="/sign-in/password">{texts.password}</a></li>
    </ul>
  </>;
}

function KeyTable(props: { keys: Key[]; changed: () => void }) {
  const sure = useSignal("");
  const act = useAct();
  const revoke = (key: Key) => act.run(key.id, async () => {
    await call("DELETE", `/api/key/${key.id}`);
    sure.value = "";
    props.changed();
    return texts.keyRevoked;
  });
  return <>
    <Table caption={texts.keys} items={props.keys} none={texts.keysNone} columns={[
      { name: texts.name, of: (k) => <Scraped value={k.name} most={64} /> },
      { name: texts.begins, of: (k) => <code>{k.prefix}</code> },
      { name: texts.scope, of: (k) => texts.scopes[k.scope] ?? k.scope },
      { name: texts.made, of: (k) => when(k.createdAt) },
      { name: texts.used, of: (k) => <>{when(k.lastUsedAt)}{k.lastUsedAddress
        && <> (<Scraped value={k.lastUsedAddress} />)</>}</> },
      { name: texts.expires, of: (k) => k.expiresAt ? when(k.expiresAt) : texts.never },
      { name: texts.change, of: (k) => sure.value !== k.id
        ? <Do act={act} text={texts.keyRevoke} of={k.name} kind="plain"
          go={() => { sure.value = k.id; }} />
        : <><Do act={act} text={texts.keyRevokeNow} of={visible(k.name, 64)} kind="danger"
          go={() => void revoke(k)} />{" "}
        <Do act={act} text={texts.cancel} kind="plain" go={() => { sure.value = ""; }} /></> },
    ]} />
    <Came of={act} />
  </>;
}

function Make(props: { made: (key: GeneratedKey) => void }) {
  const name = useEntry("key-name", "");
  const scope = useEntry("scope", "USER");
  const expires = useEntry("expires", "");
  const act = useAct();
  const make = () => void act.run([name.value, scope.value, expires.value], async () => {
    const until = expires.value ? new Date(`${expires.value}T23:59:59`).toISOString() : undefined;
    props.made(await call<GeneratedKey>("PUT", "/api/key/generate",
      { query: { name: name.value, scope: scope.value, expiresAt: until } }));
    name.value = expires.value = "";
    scope.value = "USER";
  });
  return <Form act={act} send={make} button={texts.keyMake} label={texts.keyNew}
    names={{ name: texts.name, expiresAt: texts.expires, scope: texts.scope }}>
    <Entry id="key-name" label={texts.name} value={name} most={64} hint={texts.keyNameHint} />
    <Select id="scope" label={texts.scope} value={scope} options={Object.entries(texts.scopes)} />
    <Entry id="expires" label={texts.expires} value={expires} type="date" short
      hint={texts.expiresHint} />
  </Form>;
}
