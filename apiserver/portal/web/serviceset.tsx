// What operators have set for the whole service.
import { useSignal } from "@preact/signals";
import type { ServiceSettings } from "./schema.gen";
import { call } from "./api";
import { useEntry } from "./entries";
import { Entry, Form, Table, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { count, entered, Fact, parseMoney, Scraped, when } from "./show";
import { texts } from "./texts.operators";

/** The settings. */
export function ServiceSet() {
  const read = useLoaded((signal) => call<ServiceSettings>("GET", "/api/admin/settings",
    { signal }), [resynced.value]);
  return <>
    <h1 tabIndex={-1}>{texts.settings}</h1>
    <p class="lead">{texts.settingsLead}</p>
    <Shown of={read}>{(now) => <Change key={now.revision} now={now} changed={read.again} />}</Shown>
  </>;
}

const ratesOf = (rates: Record<string, unknown>) => Object.entries(rates)
  .map(([kind, rate]) => `${kind} ${rate}`).join("\n");

/** Rates as they were entered, one a line; undefined: a line is none. */
function readRates(text: string): Record<string, string> | undefined {
  const rates: Record<string, string> = {};
  for (const line of text.split(/[\r\n]+/).map((l) => l.trim()).filter(Boolean)) {
    const said = /^(\S+)\s+(\S+)$/.exec(line);
    if (!said) {
      return undefined;
    }
    rates[said[1]!] = said[2]!;
  }
  return rates;
}

function Change(props: { now: ServiceSettings; changed: () => void }) {
  const { now } = props;
  const billing = useEntry("billing", now.walletBillingEnabled);
  const signUp = useEntry("sign-up", now.signUpEnabled);
  const low = useEntry("low", entered(now.lowBalanceThresholdMicros));
  const rates = useEntry("rates", ratesOf(now.rates));
  const customers = useEntry("customers", ratesOf(now.customerRates));
  const history = useEntry("history", String(now.historyDays ?? ""));
  const problem = useSignal<"" | "low" | "rates" | "customers" | "history">("");
  const act = useAct();
  const save = () => {
    const micros = parseMoney(low.value);
    const own = readRates(rates.value);
    const together = readRates(customers.value);
    problem.value = micros === undefined || Number.isNaN(micros) ? "low" : !own ? "rates"
      : !together ? "customers" : /^\s*\d{0,9}\s*$/.test(history.value) ? "" : "history";
    if (problem.value) {
      document.getElementById(problem.value)?.focus();
      return;
    }
    const body = { walletBillingEnabled: billing.value, signUpEnabled: signUp.value,
      lowBalanceThresholdMicros: micros, rates: own, customerRates: together,
      historyDays: history.value.trim() === "" ? undefined : Number(history.value),
      revision: now.revision };
    void act.run(body, async () => {
      await call("PUT", "/api/admin/settings", { body });
      props.changed();
      return texts.saved;
    });
  };
  return <>
    <dl class="facts">
      <Fact name={texts.revision}>{count(now.revision)}</Fact>
      <Fact name={texts.changed}>{when(now.changedAt)}</Fact>
      <Fact name={texts.changedBy}><Scraped value={now.changedBy || "–"} most={60} /></Fact>
    </dl>
    <Form act={act} send={save} button={texts.save} label={texts.settings}
      names={{ lowBalanceThresholdMicros: texts.low, rates: texts.rates,
        customerRates: texts.customerRates, historyDays: texts.historyDays }}>
      <label class="check"><input type="checkbox" checked={billing.value}
        onChange={(e) => { billing.value = e.currentTarget.checked; }} />{texts.billing}</label>
      <label class="check"><input type="checkbox" checked={signUp.value}
        onChange={(e) => { signUp.value = e.currentTarget.checked; }} />{texts.signUp}</label>
      <Entry id="low" label={texts.low} value={low} short decimal
        problem={problem.value === "low" ? texts.amountBad : undefined} />
      <Entry id="rates" label={texts.rates} value={rates} lines={4} hint={texts.ratesHint}
        problem={problem.value === "rates" ? texts.rateBad : undefined} />
      <Entry id="customers" label={texts.customerRates} value={customers} lines={4}
        problem={problem.value === "customers" ? texts.rateBad : undefined} />
      <Entry id="history" label={texts.historyDays} value={history} short hint={texts.historyHint}
        problem={problem.value === "history" ? texts.historyBad : undefined} />
    </Form>
    <h2>{texts.uploads}</h2>
    <Table caption={texts.uploads} none="" items={Object.entries(now.uploads)} columns={[
      { name: texts.name, of: ([name]) => texts.uploadFigures[name] ?? name },
      { name: texts.figure, n: true, of: ([, n]) => count(Number(n)) }]} />
  </>;
}
