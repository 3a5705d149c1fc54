// Files of one's own become rows: what is sent, how far it is, and what became of it.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Group, NewFileScraper, Scraper, ScraperCursorPage, SentFile } from "./schema.gen";
import { apiAddress, call, newKey, refusal, Refused, signIn } from "./api";
import { Came, Entry, named, Select, useAct } from "./kit";
import { resynced, Shown, Trouble, useLoaded } from "./load";
import { address } from "./route";
import { about, bytes, choices, count, Scraped } from "./show";
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
}

/** Sends a file, and tells how far it is. */
function send<T>(what: Sending, progress: (sent: number) => void, signal: AbortSignal):
Promise<T> {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", apiAddress(what.path, what.query));
    request.setRequestHeader("Content-Type", types[what.format]!);
    request.setRequestHeader("Idempotency-Key", what.key);
    request.upload.onprogress = (event) => progress(event.loaded);
    request.onerror = () => fail(new Refused("network", first.network));
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
    request.send(what.file);
  });
}

async function readFiles(signal: AbortSignal): Promise<Scraper[]> {
  const all: Scraper[] = [];
  let cursor: string | undefined;
  do {
    const page: ScraperCursorPage = await call("GET", "/api/scraper/list",
      { query: { cursor }, signal });
    all.push(...page.items.filter((s) => s.type === "FILE"));
    cursor = page.nextCursor ?? undefined;
  } while (cursor);
  return all;
}

/** Where a person sends files. */
export function Uploads() {
  const read = useLoaded(async (signal) => {
    const [groups, files] = await Promise.all([
      call<Group[]>("GET", "/api/scraper/group/list", { signal }), readFiles(signal)]);
    return { groups, files };
  }, [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.uploads}</h1>
    <p class="lead">{texts.uploadsLead}</p>
    <Shown of={read}>{({ groups, files }) => groups.length === 0
      ? <p>{texts.uploadNoGroup} <a href={address("/groups")}>{texts.groups}</a></p>
      : <Upload groups={groups} files={files} />}</Shown>
  </>;
}

type Done = { scraper: string; job: string };

function Upload(props: { groups: Group[]; files: Scraper[] }) {
  const group = useSignal(props.groups[0]!.id);
  const target = useSignal("");
  const name = useSignal("");
  const file = useSignal<File | undefined>(undefined);
  const problem = useSignal("");
  const sending = useSignal<Sending | undefined>(undefined);
  const done = useSignal<Done | undefined>(undefined);
  const act = useAct();
  const files = props.files.filter((s) => s.groupRef === group.value);
  const choose = (chosen: File | undefined) => {
    file.value = chosen;
    problem.value = chosen && !formatOf(chosen.name) ? texts.uploadFormats : "";
    if (chosen && name.value === "") {
      name.value = chosen.name.replace(/\.[^.]*$/, "").slice(0, 200);
    }
  };
  const begin = () => {
    const chosen = file.value;
    const format = chosen ? formatOf(chosen.name) : "";
    problem.value = !chosen ? texts.uploadNone : !format ? texts.uploadFormats : "";
    if (problem.value || !chosen) {
      document.getElementById("file")?.focus();
      return;
    }
    done.value = undefined;
    const path = target.value ? `/api/scraper/${target.value}/file`
      : `/api/scraper/group/${group.value}/file-scraper`;
    const query = target.value ? { format } : { format, name: name.value };
    void act.run([path, query, chosen.name, chosen.size], async () => {
      // what would be refused is refused before the file is sent
      await call("POST", path, { query: { ...query, check: true }, type: types[format] });
      sending.value = { file: chosen, path, query, format, key: newKey() };
    });
  };
  return <>
    <form noValidate onSubmit={(e) => { e.preventDefault(); begin(); }}>
      <Select id="group" label={texts.group} value={group}
        options={choices(props.groups)} />
      {files.length > 0 && <Select id="target" label={texts.uploadTo} value={target}
        hint={texts.uploadToHint}
        options={[["", texts.uploadNew], ...choices(files)]} />}
      <div>
        <label for="file">{texts.uploadFile}</label>
        <input id="file" type="file" accept=".csv,.jsonl,.ndjson,.xlsx"
          aria-describedby="file-hint file-problem" aria-invalid={!!problem.value}
          onChange={(e) => choose(e.currentTarget.files?.[0])} />
        <p class="hint" id="file-hint">{texts.uploadHint}</p>
        <p id="file-problem" class={problem.value ? "trouble" : ""} role="alert">
          {problem.value}</p>
      </div>
      {!target.value && <Entry id="upload-name" label={texts.uploadName} value={name} most={200} />}
      {!sending.value && <p><button disabled={act.busy}>{texts.uploadSend}</button></p>}
      <Came of={act} names={{ name: texts.uploadName, format: texts.uploadFile }} />
    </form>
    {sending.value && <Progress key={sending.value.key} of={sending.value}
      done={(d) => { done.value = d; sending.value = undefined; }}
      leave={() => { sending.value = undefined; }} />}
    {done.value && <p class="note" role="status">{texts.uploadDone}{" "}
      <a href={address(`/runs/${done.value.scraper}/${done.value.job}`)}>{texts.seeRun}</a></p>}
  </>;
}

/** How far a file is. One that broke off is sent again under its key, so that it counts once. */
function Progress(props: { of: Sending; done: (d: Done) => void; leave: () => void }) {
  const { of } = props;
  const sent = useSignal(0);
  const error = useSignal<Refused | undefined>(undefined);
  const tries = useSignal(0);
  const cancel = useRef(new AbortController());
  useEffect(() => {
    const own = new AbortController();
    cancel.current = own;
    const stay = (event: BeforeUnloadEvent) => event.preventDefault();
    addEventListener("beforeunload", stay);
    sent.value = 0;
    error.value = undefined;
    send<NewFileScraper | SentFile>(of, (n) => { sent.value = n; }, own.signal).then((answer) => {
      props.done({ job: answer.jobId, scraper: "scraper" in answer ? answer.scraper.id
        : of.path.split("/")[3]! });
    }, (e: unknown) => { error.value = e as Refused; })
      .finally(() => removeEventListener("beforeunload", stay));
    return () => {
      removeEventListener("beforeunload", stay);
      own.abort();
    };
  }, [tries.value]);
  const size = Math.max(1, of.file.size);
  return <section class="card" aria-label={texts.uploadProgress}>
    <label for="sent">{texts.uploadProgress}: <Scraped value={of.file.name} most={80} /></label>
    <progress id="sent" value={Math.min(sent.value, size)} max={size} />
    <p>{texts.uploadSent(bytes(Math.min(sent.value, of.file.size)), bytes(of.file.size),
      about(Math.min(100, sent.value / size * 100)))}</p>
    {!error.value && sent.value >= of.file.size && <p role="status">{texts.uploadImporting}</p>}
    {error.value ? <>
      <Trouble error={named(error.value, { name: texts.uploadName })}
        again={() => { tries.value++; }} />
      <p class="hint">{texts.uploadAgain(count(tries.value + 1))}</p>
      <p><button type="button" class="second" onClick={props.leave}>{texts.cancel}</button></p>
    </> : <p><button type="button" class="second" onClick={() => cancel.current.abort()}>
      {texts.uploadStop}</button></p>}
  </section>;
}
