// What is asked of the API and shown: while it is under way, when it is there, when it is refused.
import { signal, useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { ComponentChildren } from "preact";
import { Refused } from "./api";
import { arrive } from "./route";
import { texts } from "./texts";

/** Counts up when all that is shown has to be read again. */
export const resynced = signal(0);

/** An answer that is asked for. */
export interface Loaded<T> {
  value?: T;
  error?: Refused;
  again: () => void;
}

/** Asks, again whenever one of the reasons changes. What is there stays until the next is. */
export function useLoaded<T>(ask: (signal: AbortSignal) => Promise<T>, reasons: unknown[]):
Loaded<T> {
  const state = useSignal<{ value?: T; error?: Refused }>({});
  const tries = useSignal(0);
  useEffect(() => {
    const cancel = new AbortController();
    ask(cancel.signal).then((value) => {
      if (!cancel.signal.aborted) {
        state.value = { value };
      }
    }, (error: unknown) => {
      if (!cancel.signal.aborted) {
        state.value = { value: state.value.value, error: refused(error) };
      }
    });
    return () => cancel.abort();
  }, [...reasons, tries.value]);
  return { ...state.value, again: () => { tries.value++; } };
}

/** Whatever went wrong, as a refusal. */
export function refused(error: unknown): Refused {
  return error instanceof Refused ? error : new Refused("fault", String(error));
}

/** What went wrong, and what to do about it. */
export function Trouble(props: { error: Refused; again?: () => void }) {
  const { error } = props;
  return <div class="trouble" role="alert">
    <p><bdi>{error.message}</bdi> {error.todo}</p>
    {error.correlationId && error.items.length === 0 && <p class="hint">
      {texts.correlation} <code>{error.correlationId}</code></p>}
    {props.again && <button type="button" class="second" onClick={props.again}>
      {texts.tryAgain}</button>}
  </div>;
}

/** Shows an answer, its refusal, or that it is under way. What has the page's heading in the answer
 * has a title for when there is none. */
export function Shown<T>(props: { of: Loaded<T>; title?: string;
  children: (value: T) => ComponentChildren; }) {
  const { value, error, again } = props.of;
  useEffect(() => arrive(texts.product), [value !== undefined, !!error]); // it may have the heading
  return <>
    {error && value === undefined && props.title && <h1 tabIndex={-1}>{props.title}</h1>}
    {error && <Trouble error={error} again={again} />}
    {value !== undefined ? props.children(value)
      : !error && <p role="status">{texts.loading}</p>}
  </>;
}
