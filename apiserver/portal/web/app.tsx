// The portal: its frame, and which page is in it.
import { render } from "preact";
import type { ComponentChildren } from "preact";
import { useEffect } from "preact/hooks";
import { useSignal } from "@preact/signals";
import { call, signIn, type Refused } from "./api";
import { keepFocus } from "./focus";
import { refused, Shown, Trouble, useLoaded } from "./load";
import { address, arrive, follow, place } from "./route";
import { count, money } from "./show";
import { listen, live, me, unread, wallet } from "./store";
import { Missing, Places } from "./kit";
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
      && <span class="free"> + {texts.freePages(count(now.freeRequestsRemaining))}</span>}
    {now.lowBalance && <span class="unseen"> {texts.balanceLow}</span>}
  </p>;
}

function Head() {
  const at = place.value.path;
  const section = at.split("/")[1]!;
  const error = useSignal<Refused | undefined>(undefined);
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
      <Places name={texts.nav} places={[
        ["/", texts.navStart, at === "/" || at === "/candidates" || at === "/launch"
          || at === "/build"],
        ["/runs", texts.navRuns, at.startsWith("/runs")],
        ["/rows", texts.navRows, at.startsWith("/rows")],
        ["/groups", texts.navGroups, collected.has(section)],
        ["/wallet", texts.navWallet, purse.has(section)],
        ["/notices", unread.value > 0 ? texts.navNotices(count(unread.value))
          : texts.navSettings, settings.has(section)],
        ...me.value?.admin ? [["/operators", texts.navOperators, operated.has(section)] as
          [string, string, boolean]] : []]} />
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

// What is rarely used comes when it is asked for: a page answers what stands at a path.
type Pages = { page: (parts: string[]) => ComponentChildren };
const rest = (): Promise<Pages> => import("./rest");
const account = (): Promise<Pages> => import("./account");
const operators = (): Promise<Pages> => import("./operators");
const ofRun: Record<string, () => Promise<Pages>> = {
  fields: () => import("./fields"), changes: () => import("./changes") };
const purse = new Set(["wallet", "statements", "prices", "plan"]);
const settings = new Set(["notices", "keys", "webhooks", "preferences"]);
const collected = new Set(["groups", "scrapers", "calendar", "sites", "uploads", "schemas"]);
const operated = new Set(["operators"]);
const later: [Set<string>, () => Promise<Pages>][] =
  [[collected, rest], [purse, account], [settings, account], [operated, operators]];

function Later(props: { of: () => Promise<Pages>; path: string }) {
  const made = useLoaded(props.of, [props.of]);
  useEffect(() => arrive(texts.product), [made.value]);
  return <Shown of={made} title={texts.product}>{(pages) => pages.page(props.path.slice(1).split("/"))
    ?? <Missing />}</Shown>;
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
        : parts.length === 3 ? <Run key={path} scraper={parts[1]!} job={parts[2]!} />
        : parts.length === 4 && Object.hasOwn(ofRun, parts[3]!)
          ? <Later key={path} of={ofRun[parts[3]!]!} path={path} />
        : <Missing />;
    case "rows":
      return parts.length === 1 ? <Groups />
        : parts.length === 2 ? <Rows key={path} group={parts[1]!} /> : <Missing />;
  }
  const of = later.find(([names]) => names.has(parts[0]!))?.[1];
  return of ? <Later key={parts[0]} of={of} path={path} /> : <Missing />;
}

function App() {
  const path = place.value.path;
  useEffect(() => arrive(texts.product), [path]);
  return <><Head /><main id="content">{pageOf(path)}</main></>;
}

const app = document.getElementById("app")!;
follow();
listen();
keepFocus(app);
render(<App />, app);
