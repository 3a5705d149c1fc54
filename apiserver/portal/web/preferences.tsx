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
    <Shown of={who}>{(customer) => customer.email ? <Profile of={customer} />
      : <p>{texts.profileNone}</p>}</Shown>
    <h2>{texts.lowBelow}</h2>
    <Shown of={low}>{(now) => <Low now={now} />}</Shown>
    <h2>{texts.told}</h2>
    <Shown of={told}>{(ways) => <Told ways={ways} />}</Shown>
    <h2>{texts.takeAll}</h2>
    <p>{texts.takeAllHint}</p>
    <p><a class="button" href="/api/customer/export" download>{texts.takeAllDo}</a></p>
  </>;
}

function Profile(props: { of: Customer }) {
  const { of } = props;
  const first = useEntry("firstname", of.firstname);
  const last = useEntry("lastname", of.lastname);
  const act = useAct();
  const save = () => void act.run([first.value, last.value], async () => {
    await call("PUT", "/api/customer", { body: { firstname: first.value, lastname: last.value,
      agreeWithTerms: of.agreeWithTerms } });
    return texts.saved;
  });
  return <>
    <dl class="facts"><Fact name={texts.email}><Scraped value={of.email} /></Fact></dl>
    <Form act={act} send={save} button={texts.save} label={texts.profile}
      names={{ firstname: texts.firstname, lastname: texts.lastname }}>
      <Entry id="firstname" label={texts.firstname} value={first} />
      <Entry id="lastname" label={texts.lastname} value={last} />
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
