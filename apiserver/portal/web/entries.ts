// What is entered and not sent yet. It lives as long as the browser's tab, over reloads, too. Who
// goes to another page of the portal leaves it.
import { effect, signal, useSignal, type Signal } from "@preact/signals";
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

const place = "shoal-entries";

/** What stood in a field, as JSON, and what is entered instead. */
interface Kept { was?: string; is: unknown }

const all = read();

/** Whether a reload finds what is entered again. */
export const entriesKept = signal(true);

function read(): Record<string, Kept> {
  try {
    return JSON.parse(sessionStorage.getItem(place) ?? "{}") as Record<string, Kept>;
  } catch {
    return {};
  }
}

function keep(name: string, entry?: Kept): void {
  if (entry) {
    all[name] = entry;
  } else {
    delete all[name];
  }
  try {
    sessionStorage.setItem(place, JSON.stringify(all));
    entriesKept.value = true;
  } catch { // it is larger than what browsers keep
    sessionStorage.removeItem(place);
    entriesKept.value = false;
  }
}

/** What a person has changed of what was read. What somebody else changes meanwhile is not in it. */
export const changesOf = <T extends object>(was: T, is: T): Partial<T> =>
  Object.fromEntries((Object.keys(is) as (keyof T)[]).filter((name) =>
    JSON.stringify(is[name]) !== JSON.stringify(was[name])).map((name) => [name, is[name]])) as
    Partial<T>;

/** A value that a person enters in place of what was there. Where that is no more what it was, it
 * was sent, or somebody else has changed it: then the newest counts. */
export function useEntry<T>(id: string, was: T): Signal<T> {
  const { current: own } = useRef({ name: `${location.pathname} ${id}`, was: JSON.stringify(was) });
  const kept = all[own.name];
  const value = useSignal(kept && kept.was === own.was ? kept.is as T : was);
  // kept at once: useSignalEffect waits for the next frame, and a reload does not
  useLayoutEffect(() => effect(() => {
    const same = JSON.stringify(value.value) === own.was;
    keep(own.name, same ? undefined : { was: own.was, is: value.value });
  }), []);
  useEffect(() => () => keep(own.name), []);
  return value;
}

/** What was entered after `sent` went out, which may take a while. */
export function enteredSince<T>(now: Record<string, T>, sent: Record<string, T>): Record<string, T> {
  return Object.fromEntries(Object.entries(now).filter(([key, entry]) => entry !== sent[key]));
}
