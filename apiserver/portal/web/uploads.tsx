// Files of one's own become rows: what is sent, how far it is, and what became of it.
import { batch, computed, effect, signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { FileParts, Group, NewFileScraper, Scraper, SentFile } from "./schema.gen";
import { apiAddress, call, newKey, readScrapers, refusal, Refused, signIn } from "./api";
import { useEntry } from "./entries";
import { Came, Do, Entry, Form, named, Select, Table, useAct } from "./kit";
import { resynced, Shown, Trouble, useLoaded } from "./load";
import { address } from "./route";
import { bytes, choices, count, percent, Scraped, when } from "./show";
import { texts } from "./texts.rest";
import { texts as first } from "./texts";

const types: Record<string, string> = { csv: "text/csv", jsonl: "application/jsonl",
  xlsx: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet" };

/** The format that the name of a file says; "": none that is read. */
function formatOf(name: string): string {
  const end = name.slice(name.lastIndexOf(".") + 1).toLowerCase();
  return end === "ndjson" ? "jsonl" : end in types ? end : "";
}

/** Something that is sent: once for a key, however often it has to be tried. */
interface Sending {
  file: File;
  path: string;
  query: Record<string, string | boolean | undefined>;
  format: string;
  key: string;
  left: Left;
  came?: number; // bytes of the parts that have come
  ended?: boolean; // all of its parts have come once
}

// What is being sent, as a reload has to know it: the form, and the key, which holds for the same
// file in the same place alone.
const place = "shoal-upload";
interface Left { group: string; target: string; name: string; column: string; file: string;
  said: string; key: string }

function left(): Left | undefined {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "null") ?? undefined;
  } catch {
    return undefined;
  }
}

/** Has a reload find what is being sent. */
function keep(now: Left): void {
  try {
    sessionStorage.setItem(place, JSON.stringify(now));
  } catch { /* a browser that keeps nothing forgets the form at a reload */ }
}

const forget = () => sessionStorage.removeItem(place);

// What is longer comes in parts: where the connection breaks, it goes on behind the last of them.
const mostWhole = 4_000_000;

/** Sends bytes, and tells how many have gone. */
function transfer<T>(method: string, to: string, headers: Record<string, string>, what: Blob,
  progress: (sent: number) => void, signal: AbortSignal): Promise<T> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open(method, to);
    for (const [name, value] of Object.entries(headers)) {
      request.setRequestHeader(name, value);
    }
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onerror = () => what.slice(0, 1).arrayBuffer().then(
      () => fail(new Refused("network", first.network)),
      () => fail(new Refused("file", texts.uploadGone))); // it was changed, or is away
    request.onabort = () => fail(new Refused("stopped", texts.uploadStopped));
    request.onload = () => {
      if (request.status === 401) {
        signIn();
      }
      if (request.status < 300) {
        done(JSON.parse(request.responseText) as T);
        return;
      }
      refusal({ json: async () => JSON.parse(request.responseText),
        headers: new Headers({ "Retry-After": request.getResponseHeader("Retry-After") ?? "" }),
      }).then(fail, fail);
    };
    signal.addEventListener("abort", () => request.abort());
    request.send(what);
  });
}

/** Sends the parts of a file that have not come yet, and tells how far it is. */
async function sendParts(what: Sending, progress: (sent: number) => void, signal: AbortSignal):
Promise<void> {
  const path = `/api/uploads/${what.key}`;
  const length = what.file.size;
  const known = await call<FileParts>("GET", path, { signal }).catch((e: unknown) => {
    throw signal.aborted ? new Refused("stopped", texts.uploadStopped) : e;
  });
  let at = what.came = known.receivedBytes;
  while (at < length) {
    const from = at;
    progress(from);
    const came = await transfer<FileParts>("PUT", apiAddress(path, { offset: from, length }),
      { "Content-Type": "application/octet-stream" },
      what.file.slice(from, from + known.partBytes), (sent) => progress(from + sent), signal);
    at = what.came = came.receivedBytes;
  }
  progress(length);
}

/** Sends a file, and tells how far it is. */
async function send<T>(what: Sending, progress: (sent: number) => void, signal: AbortSignal):
Promise<T> {
  const headers = { "Content-Type": types[what.format]!, "Idempotency-Key": what.key };
  const whole = () => transfer<T>("POST", apiAddress(what.path, what.query), headers, what.file,
    progress, signal);
  if (what.file.size <= mostWhole) {
    return whole();
  }
  const end = () => transfer<T>("POST",
    apiAddress(what.path, { ...what.query, uploadId: what.key }), headers, new Blob(), () => {},
    signal);
  if (what.ended) { // it may be taken already: then its parts are gone
    try {
      return await end();
    } catch (e) {
      if ((e as Refused).code !== "invalid_request") {
        throw e;
      }
    }
  }
  try {
    await sendParts(what, progress, signal);
  } catch (e) {
    if ((e as Refused).code === "INGEST_CAPACITY") { // parts of other files leave no room
      return whole();
    }
    throw e;
  }
  what.ended = true;
  return end();
}

/** Where a person sends files. */
export function Uploads() {
  const read = useLoaded(async (signal) => {
    const [groups, scrapers] = await Promise.all([
      call<Group[]>("GET", "/api/scraper/group/list", { signal }), readScrapers(signal)]);
    return { groups, files: scrapers.filter((s) => s.type === "FILE") };
  }, [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.uploads}</h1>
    <p class="lead">{texts.uploadsLead}</p>
    <Shown of={read}>{({ groups, files }) => groups.length === 0
      ? <p>{texts.uploadNoGroup} <a href={address("/groups")}>{texts.groups}</a></p>
      : <>
        <Upload groups={groups} files={files} changed={read.again} />
        <Sent groups={groups} files={files} changed={read.again} />
      </>}</Shown>
  </>;
}

// What a file is refused with that needs a column named that tells its rows apart.
const columnless = new Set(["KEY_COLUMN_REQUIRED", "KEY_COLUMN_INVALID"]);

interface Own { groups: Group[]; files: Scraper[]; changed: () => void }

function Upload(props: Own) {
  const before = useSignal(left());
  const kept = before.value && props.groups.some((g) => g.id === before.value?.group)
    ? before.value : undefined;
  const group = useEntry("group", kept?.group ?? props.groups[0]!.id);
  const target = useEntry("target", kept?.target ?? "");
  const name = useEntry("upload-name", kept?.name ?? "");
  const given = useEntry("upload-given", ""); // the file's name: the next file's takes its place
  const column = useEntry("upload-column", kept?.column ?? "");
  const asking = useEntry("upload-asking", kept?.column ? kept.target : ""); // for the column
  const file = useSignal<File | undefined>(undefined);
  const input = useRef<HTMLInputElement>(null);
  const problem = useSignal("");
  const act = useAct();
  const files = props.files.filter((s) => s.groupRef === group.value);
  const to = files.some((s) => s.id === target.value) ? target.value : ""; // none of another group
  const asks = to !== "" && asking.value === to;
  useEffect(() => {
    if (act.error && columnless.has(act.error.code)) {
      document.getElementById("upload-column")?.focus();
    }
  }, [act.error]);
  const choose = (chosen: File | undefined) => {
    file.value = chosen;
    problem.value = chosen && !formatOf(chosen.name) ? texts.uploadFormats : "";
    if (chosen && (name.value === "" || name.value === given.value)) {
      name.value = given.value = chosen.name.replace(/\.[^.]*$/, "").slice(0, 200);
    }
  };
  useEffect(() => {
    if (done.value) {
      file.value = undefined;
      name.value = given.value = column.value = asking.value = "";
      input.current!.value = "";
      props.changed();
    }
  }, [done.value]);
  useEffect(() => () => { done.value = undefined; }, []); // it was read
  const begin = () => {
    const chosen = file.value;
    const format = chosen ? formatOf(chosen.name) : "";
    problem.value = !chosen ? texts.uploadNone : !format ? texts.uploadFormats : "";
    if (problem.value || !chosen) {
      document.getElementById("file")?.focus();
      return;
    }
    done.value = undefined;
    before.value = undefined;
    const path = to ? `/api/scraper/${to}/file`
      : `/api/scraper/group/${group.value}/file-scraper`;
    const query = !to ? { format, name: name.value }
      : { format, keyColumn: asks && column.value.trim() || undefined };
    const said = JSON.stringify([path, query, chosen.name, chosen.size, chosen.lastModified]);
    const now = { group: group.value, target: to, name: name.value, file: chosen.name, said,
      column: query.keyColumn ?? "" };
    void act.run([path, query, chosen.name, chosen.size], async () => {
      const was = left();
      if (was?.said !== said) { // and may be there already
        // what would be refused is refused before the file is sent
        await call("POST", path, { query: { ...query, check: true }, type: types[format] })
          .catch((e: unknown) => {
            if (e instanceof Refused && columnless.has(e.code)) {
              asking.value = to;
            }
            throw e;
          });
      }
      const key = was?.said === said ? was.key : newKey();
      if (!sending.value) { // who has left the page meanwhile may have begun one again
        begins({ file: chosen, path, query, format, key, left: { ...now, key } });
      }
    });
  };
  return <>
    {kept && !sending.value && <p class="note">{texts.uploadLeft}{" "}
      <Scraped value={kept.file} most={80} /></p>}
    <form noValidate onSubmit={(e) => { e.preventDefault(); begin(); }}>
      <Select id="group" label={texts.group} value={group}
        options={choices(props.groups)} />
      {files.length > 0 && <Select id="target" label={texts.uploadTo} value={target} shown={to}
        hint={texts.uploadToHint}
        options={[["", texts.uploadNew], ...choices(files)]} />}
      <div>
        <label for="file">{texts.uploadFile}</label>
        <input id="file" ref={input} type="file" accept=".csv,.jsonl,.ndjson,.xlsx"
          aria-describedby="file-hint file-problem" aria-invalid={!!problem.value}
          onChange={(e) => choose(e.currentTarget.files?.[0])} />
        <p class="hint" id="file-hint">{texts.uploadHint}</p>
        <p id="file-problem" class={problem.value ? "trouble" : ""} role="alert">
          {problem.value}</p>
      </div>
      {!to && <Entry id="upload-name" label={texts.uploadName} value={name} most={200} />}
      {asks && <Entry id="upload-column" label={texts.uploadKey} value={column} most={256}
        hint={texts.uploadKeyHint} />}
      {!sending.value && <p><button aria-disabled={act.busy}>{texts.uploadSend}</button></p>}
      <Came of={act} names={{ name: texts.uploadName, format: texts.uploadFile,
        keyColumn: texts.uploadKey }} />
    </form>
    {sending.value && <Progress of={sending.value} />}
    {done.value && <p class="note" role="status">{texts.uploadDone}{" "}
      <a href={address(`/runs/${done.value.scraper}/${done.value.job}`)}>{texts.seeRun}</a></p>}
  </>;
}

// One that broke off is sent again by itself, so often and so late (milliseconds).
const byItself = { most: 5, first: 2_000, last: 30_000 };
const passing = new Set(["network", "unavailable"]);

// The file that is being sent, and how far it is. It goes on while a person walks through the
// portal. Each attempt has the same key, so that it counts once.
const sending = signal<Sending | undefined>(undefined);
const sent = signal(0); // bytes
const error = signal<Refused | undefined>(undefined);
const tries = signal(0);
const round = signal(0); // the attempt with which a person began
const done = signal<{ scraper: string; job: string } | undefined>(undefined);
const waits = computed(() => !!error.value && passing.has(error.value.code)
  && tries.value - round.value < byItself.most);
const under = computed(() => !!sending.value && (!error.value || waits.value));
let cancel = new AbortController();

const begins = (of: Sending) => batch(() => {
  tries.value = round.value = 0;
  sending.value = of;
  attempt(of);
});

function attempt(of: Sending): void {
  const own = cancel = new AbortController();
  keep(of.left);
  sent.value = of.came ?? 0; // which is not sent again
  error.value = undefined;
  send<NewFileScraper | SentFile>(of, (n) => { sent.value = n; }, own.signal).then((answer) => {
    forget();
    done.value = { job: answer.jobId, scraper: "scraper" in answer ? answer.scraper.id
      : of.path.split("/")[3]! };
    sending.value = undefined;
  }, (e: unknown) => {
    if (!own.signal.aborted) {
      fails(e as Refused);
    }
  });
}

function fails(refused: Refused): void {
  error.value = refused;
  if (!passing.has(refused.code)) {
    forget(); // the service knows nothing of it
  }
}

/** Tries again. For a person who says so it begins anew: all attempts are before it. */
const again = (anew = false) => batch(() => {
  tries.value++;
  if (anew) {
    round.value = tries.value;
  }
  attempt(sending.value!);
});

effect(() => {
  if (!waits.value) {
    return;
  }
  const next = () => again();
  const timer = setTimeout(next,
    Math.min(byItself.first * 2 ** (tries.value - round.value), byItself.last));
  addEventListener("online", next);
  return () => {
    clearTimeout(timer);
    removeEventListener("online", next);
  };
});

effect(() => {
  if (!under.value) {
    return;
  }
  const stay = (event: BeforeUnloadEvent) => event.preventDefault();
  addEventListener("beforeunload", stay);
  return () => removeEventListener("beforeunload", stay);
});

/** How far a file is. */
function Progress(props: { of: Sending }) {
  const { of } = props;
  const stop = () => {
    cancel.abort();
    fails(new Refused("stopped", texts.uploadStopped));
  };
  const size = Math.max(1, of.file.size);
  return <section class="card" aria-label={texts.uploadProgress}>
    <label for="sent">{texts.uploadProgress}: <Scraped value={of.file.name} most={80} /></label>
    <progress id="sent" value={Math.min(sent.value, size)} max={size} />
    <p>{texts.uploadSent(bytes(Math.min(sent.value, of.file.size)), bytes(of.file.size),
      percent(Math.min(100, sent.value / size * 100)))}</p>
    {!error.value && sent.value >= of.file.size && <p role="status">{texts.uploadImporting}</p>}
    {waits.value && <p class="note" role="status">
      {texts.uploadBroke(count(tries.value - round.value + 1), count(byItself.most))}</p>}
    {under.value ? <p class="actions">
      {waits.value && <button type="button" onClick={() => again()}>{texts.uploadNow}</button>}
      <button type="button" class="second" onClick={stop}>{texts.uploadStop}</button></p> : <>
      <Trouble error={named(error.value!, { name: texts.uploadName })} again={() => again(true)} />
      <p class="hint">{texts.uploadAgain(count(tries.value + 1))}</p>
      <p><button type="button" class="second" onClick={() => {
        forget();
        sending.value = undefined;
      }}>{texts.cancel}</button></p>
    </>}
  </section>;
}

/** The scrapers that files have made. A name and a group can be changed. */
function Sent(props: Own) {
  const chosen = useSignal("");
  const act = useAct();
  const one = props.files.find((s) => s.id === chosen.value);
  const groups = new Map(props.groups.map((g) => [g.id, g.name]));
  return <>
    <h2>{texts.uploadsSent}</h2>
    <Table caption={texts.uploadsSent} items={props.files} none={texts.uploadsNone} columns={[
      { name: texts.name, of: (s) => <Scraped value={s.name} most={100} /> },
      { name: texts.change, of: (s) => <Do act={act} text={texts.uploadMove} of={s.name}
        kind="plain" go={() => { chosen.value = s.id; }} /> },
      { name: texts.group, of: (s) => <a href={address(`/rows/${s.groupRef}`)}>
        <Scraped value={groups.get(s.groupRef) ?? s.groupRef} most={100} /></a> },
      { name: texts.navRuns, of: (s) => <a href={address("/runs", { scraperId: s.id })}>
        {texts.seeRuns}</a> },
      { name: texts.made, of: (s) => when(s.createdAt) }]} />
    {one && <Move key={one.id} of={one} groups={props.groups}
      leave={() => { chosen.value = ""; }} changed={props.changed} />}
  </>;
}

/** Renames an upload, and moves it to another group. */
function Move(props: { of: Scraper; groups: Group[]; leave: () => void; changed: () => void }) {
  const { of } = props;
  const name = useEntry("sent-name", of.name);
  const group = useEntry("sent-group", of.groupRef);
  const act = useAct();
  useEffect(() => document.getElementById("sent-name")?.focus(), []);
  const save = () => {
    const body = { ...of, name: name.value, groupRef: group.value };
    void act.run([name.value, group.value], async (key) => {
      await call<Scraper>("PUT", "/api/scraper", { key, body });
      props.changed();
      return texts.saved;
    });
  };
  return <section class="card">
    <h3>{texts.uploadMove}: <Scraped value={of.name} most={100} /></h3>
    <Form act={act} send={save} button={texts.save} label={texts.uploadMove}
      names={{ name: texts.name, groupRef: texts.group }}>
      <Entry id="sent-name" label={texts.name} value={name} most={200} />
      <Select id="sent-group" label={texts.group} value={group} hint={texts.uploadMoveHint}
        options={choices(props.groups)} />
    </Form>
    <p><Do act={act} text={texts.close} go={props.leave} /></p>
  </section>;
}
