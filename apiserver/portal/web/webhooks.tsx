// Webhooks: where events are sent, and what came of each.
import { useSignal } from "@preact/signals";
import type { Webhook, WebhookDelivery, WebhookList, WebhookWithSecret } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Came, Do, Entry, Form, Pager, Table, useAct, usePage } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { address, go, stays } from "./route";
import { count, Fact, Scraped, when } from "./show";
import { Secret } from "./secret";
import { events, texts } from "./texts.account";

const stateOf = (w: Webhook) => w.enabled ? texts.hookOn
  : w.disabledBecause ? texts.hookOff[w.disabledBecause] ?? texts.hookOffElse : texts.hookOffElse;

/** All webhooks. */
export function Webhooks() {
  const list = useLoaded((signal) => call<WebhookList>("GET", "/api/webhooks", { signal }),
    [resynced.value]);
  const made = useSignal<WebhookWithSecret | undefined>(undefined);
  const act = useAct();
  return <>
    <h1 tabIndex={-1}>{texts.webhooks}</h1>
    <p class="lead">{texts.webhooksLead}</p>
    {made.value && <Secret title={texts.hookMade} secret={made.value.secret}
      close={() => { made.value = undefined; }} />}
    <Shown of={list}>{({ webhooks }) => <Table caption={texts.webhooks} items={webhooks}
      none={texts.webhooksNone} columns={[
        { name: texts.hookTo, of: (w) => <a href={address(`/webhooks/${w.id}`)}>
          <Scraped value={w.url} most={80} /></a> },
        { name: texts.state, of: (w) => stateOf(w) },
        { name: texts.hookEvents, n: true, of: (w) => count(w.events.length) },
        { name: texts.hookLog, n: true, of: (w) => count(w.loggedDeliveryCount) },
        { name: texts.made, of: (w) => when(w.createdAt) }]} />}</Shown>
    <h2>{texts.hookNew}</h2>
    <Fields act={act} button={texts.hookMake} label={texts.hookNew} send={(body, clear) =>
      void act.run(body, async (key) => {
        made.value = await call<WebhookWithSecret>("POST", "/api/webhooks", { key, body });
        clear();
        list.again();
      })} />
  </>;
}

interface Body { url: string; events: string[]; enabled?: boolean }

function Fields(props: { of?: Webhook; act: ReturnType<typeof useAct>; button: string;
  label: string; send: (body: Body, clear: () => void) => void; }) {
  const { of } = props;
  const url = useEntry("hook-url", of?.url ?? "");
  const chosen = useEntry("hook-events", of?.events ?? ["SCRAPER_RUN_COMPLETED",
    "SCRAPER_RUN_FAILED"]);
  const on = useEntry("hook-on", of?.enabled ?? true);
  return <Form act={props.act} button={props.button} label={props.label}
    names={{ url: texts.hookTo, events: texts.hookEvents }}
    send={() => props.send({ url: url.value, events: chosen.value, enabled: on.value },
      () => { url.value = ""; })}>
    <Entry id="hook-url" label={texts.hookTo} value={url} type="url" hint={texts.hookToHint} />
    <fieldset><legend>{texts.hookEvents}</legend>
      {Object.entries(events).map(([event, text]) => <label class="check" key={event}>
        <input type="checkbox" checked={chosen.value.includes(event)} onChange={(e) => {
          const others = chosen.value.filter((other) => other !== event);
          chosen.value = e.currentTarget.checked ? [...others, event] : others;
        }} />{text}</label>)}</fieldset>
    {of && <label class="check"><input type="checkbox" checked={on.value}
      onChange={(e) => { on.value = e.currentTarget.checked; }} />{texts.hookOn}</label>}
  </Form>;
}

/** One webhook, with its log. */
export function OneWebhook(props: { id: string }) {
  const path = `/api/webhooks/${encodeURIComponent(props.id)}`;
  const read = useLoaded((signal) => call<Webhook>("GET", path, { signal }),
    [props.id, resynced.value]);
  const made = useSignal<WebhookWithSecret | undefined>(undefined);
  const hours = useEntry("hours", "24");
  const sure = useSignal(false);
  const change = useAct();
  const act = useAct();
  const rotates = useAct();
  const log = usePage<WebhookDelivery>(`${path}/deliveries`, {});
  const again = () => { read.again(); log.again(); };
  const test = () => act.run("test", async () => {
    await call("POST", `${path}/test`);
    again();
    return texts.hookTested;
  });
  const wrong = useSignal("");
  const rotate = () => {
    wrong.value = /^\d{1,3}$/.test(hours.value) ? "" : texts.hookOverlapBad;
    if (wrong.value) {
      document.getElementById("hours")?.focus();
      return;
    }
    void rotates.run(hours.value, async (key) => {
      made.value = await call<WebhookWithSecret>("POST", `${path}/rotate`,
        { key, body: { overlapHours: Number(hours.value) } });
      again();
    });
  };
  const remove = () => act.run("remove", async () => {
    const here = stays();
    await call("DELETE", path);
    if (here()) {
      go(address("/webhooks"));
    }
  });
  return <Shown of={read} title={texts.webhook}>{(hook) => <>
    <h1 tabIndex={-1}>{texts.webhook}</h1>
    <p class="lead"><Scraped value={hook.url} most={300} /></p>
    <dl class="facts">
      <Fact name={texts.state}>{stateOf(hook)}</Fact>
      <Fact name={texts.hookFailing}>{when(hook.failingSince)}</Fact>
      <Fact name={texts.hookDropped}>{count(hook.droppedEvents)}</Fact>
      <Fact name={texts.hookFormer}>{when(hook.formerSecretUntil)}</Fact>
    </dl>
    {!hook.enabled && <p class="note">{(hook.disabledBecause
      && texts.hookOffTodo[hook.disabledBecause]) ?? texts.hookOffTodoElse}</p>}
    {made.value && <Secret title={texts.hookRotated} secret={made.value.secret}
      close={() => { made.value = undefined; }} />}
    <p class="actions"><Do act={act} text={texts.hookTest} go={() => void test()} /></p>
    <Came of={act} />
    <Deliveries path={path} log={log} again={again} />
    <h2>{texts.hookChange}</h2>
    <Fields of={hook} act={change} button={texts.save} label={texts.hookChange}
      send={(body) => void change.run(body, async () => {
        await call("PUT", path, { body });
        again();
        return texts.saved;
      })} />
    <h2>{texts.hookRotate}</h2>
    <Entry id="hours" label={texts.hookOverlap} value={hours} type="number" short
      hint={texts.hookOverlapHint} problem={wrong.value || undefined} />
    <p><Do act={rotates} text={texts.hookRotate} go={rotate} /></p>
    <Came of={rotates} names={{ overlapHours: texts.hookOverlap }} />
    <h2>{texts.hookRemove}</h2>
    <p class="actions">{!sure.value
      ? <Do act={act} text={texts.hookRemove} go={() => { sure.value = true; }} />
      : <><Do act={act} text={texts.hookRemoveNow} kind="danger" go={() => void remove()} />
        <Do act={act} text={texts.cancel} go={() => { sure.value = false; }} /></>}</p>
  </>}</Shown>;
}

/** Why a delivery failed, and what to do about it. The error begins with its code. */
function Failure(props: { error: string; status: number | null }) {
  const { error, status } = props;
  const [, code = "", said = error] = /^([A-Za-z_]+): (.*)$/s.exec(error) ?? [];
  return <><Scraped value={said} most={300} /> {texts.hookTodo[code]
    ?? texts.hookTodoAnswered(status ?? 0)}</>;
}

function Deliveries(props: { path: string; again: () => void;
  log: ReturnType<typeof usePage<WebhookDelivery>>; }) {
  const { log } = props;
  const act = useAct();
  const send = (d: WebhookDelivery) => act.run(d.id, async () => {
    await call("POST", `${props.path}/deliveries/${d.id}/redeliver`);
    props.again();
    return texts.hookSentAgain;
  });
  return <section>
    <h2>{texts.hookLog}</h2>
    <p><Do act={act} text={texts.refresh} go={props.again} /></p>
    <Shown of={log}>{(page) => <>
      <Table caption={texts.hookLog} items={page.content} none={texts.hookLogNone} columns={[
        { name: texts.at, of: (d) => when(d.createdAt) },
        { name: texts.event, of: (d) => events[d.event] ?? texts.hookTestEvent },
        { name: texts.state, of: (d) => texts.deliveryStates[d.state] ?? d.state },
        { name: texts.tries, n: true, of: (d) => count(d.tries) },
        { name: texts.answer, wide: true, of: (d) => d.error
          ? <Failure error={d.error} status={d.status} /> : d.status ?? "–" },
        { name: texts.nextTry, of: (d) => when(d.nextTry) },
        { name: texts.change, of: (d) => <Do act={act} text={texts.hookSendAgain}
          of={when(d.createdAt)} kind="plain" go={() => void send(d)} /> }]} />
      <Pager of={page} at={log.at} /></>}</Shown>
    <Came of={act} />
  </section>;
}
