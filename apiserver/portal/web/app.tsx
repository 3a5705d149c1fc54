// The portal: its frame, and which page is in it.
import { render } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { call, signIn, type Refused } from "./api";
import { refused, Trouble } from "./load";
import { address, follow, place } from "./route";
import { count, money } from "./show";
import { listen, live, wallet } from "./store";
import { texts } from "./texts";
import { Candidates, Launch, Start } from "./start";
import { Builder } from "./builder";
import { Run, Runs } from "./runs";
import { Groups, Rows } from "./rows";

function Balance() {
  const now = wallet.value;
  if (!now) {
    return null;
  }
  return <p class={now.lowBalance ? "balance low" : "balance"}>
    <span class="name">{texts.balance}</span>{" "}
    <strong>{money(now.balanceMicros, now.currency)}</strong>
    {now.freeRequestsRemaining > 0
      && <span> + {texts.freePages(count(now.freeRequestsRemaining))}</span>}
    {now.lowBalance && <span class="unseen"> {texts.balanceLow}</span>}
  </p>;
}

function Head() {
  const at = place.value.path;
  const error = useSignal<Refused | undefined>(undefined);
  const link = (path: string, text: string, here: boolean) => <li>
    <a href={address(path)} aria-current={here ? "page" : undefined}>{text}</a></li>;
  const leave = () => call("POST", "/api/auth/sign-out").then(() => {
    sessionStorage.clear();
    signIn();
  }, (e: unknown) => { error.value = refused(e); });
  return <header>
    <a class="skip" href="#content" onClick={(event) => {
      event.preventDefault();
      document.querySelector<HTMLElement>("h1")?.focus();
    }}>{texts.skip}</a>
    <div class="bar">
      <a class="brand" href={address("/")}>{texts.product}</a>
      <nav aria-label={texts.nav}><ul>
        {link("/", texts.navStart, at === "/" || at === "/candidates" || at === "/launch"
          || at === "/build")}
        {link("/runs", texts.navRuns, at.startsWith("/runs"))}
        {link("/rows", texts.navRows, at.startsWith("/rows"))}
      </ul></nav>
      <Balance />
      <div class="who">
        <a href="/sign-in">{texts.account}</a>
        <button type="button" class="plain" onClick={leave}>{texts.signOut}</button>
      </div>
    </div>
    {!live.value && <p class="note" role="status">{texts.live}</p>}
    {error.value && <Trouble error={error.value} />}
  </header>;
}

function Missing() {
  return <><h1 tabIndex={-1}>{texts.missing}</h1>
    <p>{texts.missingHow} <a href={address("/")}>{texts.navStart}</a></p></>;
}

/** The page of a place. */
function pageOf(path: string) {
  const parts = path.slice(1).split("/");
  switch (parts[0]) {
    case "": return <Start />;
    case "candidates": return <Candidates />;
    case "build": return <Builder />;
    case "launch": return <Launch />;
    case "runs":
      return parts.length === 1 ? <Runs />
        : parts.length === 3 ? <Run key={path} scraper={parts[1]!} job={parts[2]!} /> : <Missing />;
    case "rows":
      return parts.length === 1 ? <Groups />
        : parts.length === 2 ? <Rows key={path} group={parts[1]!} /> : <Missing />;
  }
  return <Missing />;
}

function App() {
  const path = place.value.path;
  const first = useRef(true);
  useEffect(() => { // who goes to another page hears and reads its heading first
    const heading = document.querySelector<HTMLElement>("h1");
    document.title = `${heading?.textContent ?? ""} – ${texts.product}`;
    if (!first.current) {
      heading?.focus();
    }
    first.current = false;
  }, [path]);
  return <><Head /><main id="content">{pageOf(path)}</main></>;
}

follow();
listen();
render(<App />, document.getElementById("app")!);
