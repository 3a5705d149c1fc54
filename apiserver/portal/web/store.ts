// What the service tells by itself: one stream for all pages of the portal.
import { effect, signal } from "@preact/signals";
import type { Identity, JobStatusEvent, NotificationEvent, TopUpEvent, UnreadNotifications,
  Wallet } from "./schema.gen";
import { call } from "./api";
import { resynced } from "./load";

/** The newest state of the wallet, once it is known. */
export const wallet = signal<Wallet | undefined>(undefined);

/** Who has signed in, once it is known. */
export const me = signal<Identity | undefined>(undefined);

/** How many notices were not read. */
export const unread = signal(0);

/** The newest top-up that the stream has told of. */
export const topUp = signal<TopUpEvent | undefined>(undefined);

/** Newest states of runs, by their id. */
export const progress = signal<ReadonlyMap<string, Progress>>(new Map());

/** Whether the stream is there. */
export const live = signal(true);

/** The progress of a run, and how fast it is. */
export interface Progress extends JobStatusEvent {
  pagesPerSecond: number;
}

// Bounds of what is kept.
const mostRuns = 1_000; // the API allows a customer as many under way
const window = 5_000; // of the speed, in milliseconds
const apart = 100; // between two samples, in milliseconds
const retry = 5_000;

interface Sample { at: number; pages: number }
const samples = new Map<string, Sample[]>();

function speed(event: JobStatusEvent, now: number): number {
  const kept = (samples.get(event.jobId) ?? []).filter((s) => now - s.at <= window);
  if (now - (kept.at(-1)?.at ?? -apart) >= apart) {
    kept.push({ at: now, pages: event.totalRequests });
  }
  samples.set(event.jobId, kept);
  const took = now - kept[0]!.at;
  return took < 500 ? 0 : (event.totalRequests - kept[0]!.pages) / (took / 1000);
}

function tell(event: JobStatusEvent): void {
  const known = new Map(progress.value);
  known.delete(event.jobId); // the newest one is the last
  known.set(event.jobId, { ...event, pagesPerSecond: speed(event, performance.now()) });
  for (const id of known.keys()) {
    if (known.size <= mostRuns) {
      break;
    }
    known.delete(id);
    samples.delete(id);
  }
  progress.value = known;
}

let stream: EventSource | undefined;

// The state that is known: first that of the page, which is older than all that it asks for.
let heard = document.querySelector<HTMLMetaElement>("meta[name=index]")?.content ?? "0";

function open(): void {
  stream?.close();
  const opened = new EventSource(`/api/events/stream?lastEventId=${heard}`);
  stream = opened;
  const on = <T>(name: string, take: (event: T) => void) =>
    opened.addEventListener(name, (event) => {
      heard = (event as MessageEvent).lastEventId || heard;
      take(JSON.parse((event as MessageEvent).data));
    });
  on<JobStatusEvent>("job.status", tell);
  on<Wallet>("wallet.updated", (newest) => { wallet.value = newest; });
  on<TopUpEvent>("topup.status", (newest) => { topUp.value = newest; });
  on<NotificationEvent>("notification", (newest) => { unread.value = newest.unread; });
  on("resync", () => { resynced.value++; });
  opened.onopen = () => {
    if (!live.value) {
      resynced.value++; // what has changed meanwhile is not known
    }
    live.value = true;
  };
  opened.onerror = () => {
    live.value = false;
    if (opened.readyState === EventSource.CLOSED && stream === opened) {
      stream = undefined; // it was refused: the browser does not come back by itself
      setTimeout(() => { if (!stream && !document.hidden) { open(); } }, retry);
    }
  };
}

/** Listens for as long as the page is seen: browsers have few connections to a host. */
export function listen(): void {
  open();
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      stream?.close();
      stream = undefined;
    } else if (!stream) {
      resynced.value++;
      open();
    }
  });
  addEventListener("pageshow", (event) => {
    if (event.persisted) {
      location.reload(); // the browser's way back shows it as it was left
    }
  });
  effect(() => {
    resynced.value; // the reason to read it
    call<Wallet>("GET", "/api/wallet").then((read) => { wallet.value = read; },
      () => { /* the head goes without: what the page shows says what is wrong */ });
    call<UnreadNotifications>("GET", "/api/notifications/unread").then((read) => {
      unread.value = read.unread;
    }, () => { /* as above */ });
  });
  call<Identity>("GET", "/api/key/whoami").then((read) => {
    me.value = read;
    owns(read.customerRef);
  }).catch(() => { /* as above */ });
}

const owner = "shoal-owner";

/** Forgets what the tab has stored where that is of a customer whose session has ended here. */
function owns(customer: string): void {
  const before = sessionStorage.getItem(owner);
  if (before === customer) {
    return;
  }
  if (before !== null) {
    sessionStorage.clear();
  }
  sessionStorage.setItem(owner, customer);
  if (before !== null) {
    location.reload(); // the page has read it already
  }
}
