// Preferences: who the customer is, what they are told, and what they take with them.
import { useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import type { Customer, WalletPreferences } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Came, Entry, Form, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { entered, Fact, parseMoney, Scraped } from "./show";
import { events, texts } from "./texts.account";

/** All preferences. */
export function Preferences() {
  const low = useLoaded((signal) => call<WalletPreferences>("GET",
    "/api/customer/preferences/wallet", { signal }), [resynced.value]);
  const told = useLoaded((signal) => call<Record<string, string>>("GET",
    "/api/customer/preferences/notifications", { signal }), [resynced.value]);
  const who = useLoaded((signal) => call<Customer>("GET", "/api/customer", { signal }),
    [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.preferences}</h1>
    <h2>{texts.profile}</h2>
    <Shown of={who}>{(customer) => <Profile of={customer} changed={who.again} />}</Shown>
    <h2>{texts.lowBelow}</h2>
    <Shown of={low}>{(now) => <Low now={now} />}</Shown>
    <h2>{texts.told}</h2>
    <Shown of={told}>{(ways) => <Told ways={ways} />}</Shown>
    <h2>{texts.takeAll}</h2>
    <p>{texts.takeAllHint}</p>
    <p><a class="button" href="/api/customer/export" download>{texts.takeAllDo}</a></p>
  </>;
}

/** Who the customer is. Who has no profile makes one: shares reach its address. */
function Profile(props: { of: Customer; changed: () => void }) {
  const { of } = props;
  const email = useEntry("email", of.email);
  const first = useEntry("firstname", of.firstname);
  const last = useEntry("lastname", of.lastname);
  const agrees = useEntry("agrees", of.agreeWithTerms);
  const act = useAct();
  const save = () => {
    const named = { firstname: first.value, lastname: last.value, agreeWithTerms: agrees.value };
    void act.run([email.value, named], async (key) => {
      await (of.email ? call("PUT", "/api/customer", { body: named })
        : call("POST", "/api/customer", { key, body: { ...named, email: email.value } }));
      props.changed();
      return texts.saved;
    });
  };
  return <>
    {of.email ? <dl class="facts"><Fact name={texts.email}><Scraped value={of.email} /></Fact></dl>
      : <p>{texts.profileNone}</p>}
    <Form act={act} send={save} label={texts.profile}
      button={of.email ? texts.save : texts.profileMake}
      names={{ email: texts.email, firstname: texts.firstname, lastname: texts.lastname,
        agreeWithTerms: texts.agrees }}>
      {!of.email && <Entry id="email" label={texts.email} value={email} type="email"
        hint={texts.profileEmail} />}
      <Entry id="firstname" label={texts.firstname} value={first} />
      <Entry id="lastname" label={texts.lastname} value={last} />
      {!of.email && <>
        <label class="check"><input type="checkbox" checked={agrees.value}
          onChange={(e) => { agrees.value = e.currentTarget.checked; }} />{texts.agrees}</label>
        <p class="hint"><a href="/api/customer/user-agreement">{texts.terms}</a></p></>}
    </Form>
  </>;
}

function Low(props: { now: WalletPreferences }) {
  const amount = useEntry("low", entered(props.now.lowBalanceThresholdMicros));
  const problem = useSignal("");
  const act = useAct();
  const save = () => {
    const micros = parseMoney(amount.value);
    problem.value = micros === undefined || Number.isNaN(micros) ? texts.amountBad : "";
    if (problem.value) {
      document.getElementById("low")?.focus();
      return;
    }
    void act.run(micros, async () => {
      await call("PUT", "/api/customer/preferences/wallet",
        { body: { lowBalanceThresholdMicros: micros } });
      return texts.saved;
    });
  };
  return <Form act={act} send={save} button={texts.save} label={texts.lowBelow}
    names={{ lowBalanceThresholdMicros: texts.amount }}>
    <Entry id="low" label={texts.amount} value={amount} hint={texts.lowHint} short decimal
      problem={problem.value || undefined} />
  </Form>;
}

function Told(props: { ways: Record<string, string> }) {
  const ways = useSignal(props.ways);
  const act = useAct();
  const turn = useRef(Promise.resolve()); // one after the other, so that none is passed over
  const set = (event: string, way: string) => {
    const before = ways.value[event]!;
    const shows = (way: string) => { ways.value = { ...ways.value, [event]: way }; };
    shows(way);
    turn.current = turn.current.then(async () => {
      const done = await act.run([event, way], async () => {
        await call("PUT", "/api/customer/preferences/notifications", { body: { [event]: way } });
        return texts.saved;
      });
      if (!done) {
        shows(before);
      }
    });
  };
  return <>
    <div class="ways">{Object.keys(ways.value).sort().map((event) => <div key={event}>
      <label for={`told-${event}`}>{events[event] ?? event}</label>
      <select id={`told-${event}`} value={ways.value[event]}
        onChange={(e) => set(event, e.currentTarget.value)}>
        {Object.entries(texts.ways).map(([way, text]) => <option key={way} value={way}>{text}
        </option>)}</select></div>)}</div>
    <Came of={act} />
  </>;
}
