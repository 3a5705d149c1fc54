// A secret is shown once, while the page stands as it is.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { texts } from "./texts.account";

/** Shows a secret until a person has it. */
export function Secret(props: { title: string; secret: string; close: () => void;
  children?: ComponentChildren; }) {
  const said = useSignal("");
  const head = useRef<HTMLHeadingElement>(null);
  useEffect(() => head.current?.focus(), []);
  const copy = () => navigator.clipboard.writeText(props.secret).then(
    () => { said.value = texts.copied; }, () => { said.value = texts.copyNot; });
  return <section class="card" aria-label={props.title}>
    <h2 tabIndex={-1} ref={head}>{props.title}</h2>
    <p>{texts.secretOnce}</p>
    <p><code class="secret">{props.secret}</code></p>
    {props.children}
    <p class="actions">
      <button type="button" onClick={() => void copy()}>{texts.copy}</button>
      <button type="button" class="second" onClick={props.close}>{texts.secretKept}</button></p>
    <p role="status">{said.value}</p>
  </section>;
}
