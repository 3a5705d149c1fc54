// The catalogue of plans, as operators set it.
import { useSignal } from "@preact/signals";
import type { PlanOffer, ServiceSettings } from "./schema.gen";
import { call, Refused } from "./api";
import { enteredSince, useEntry } from "./entries";
import { Came, Do, Select, useAct } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { money, parseMoney } from "./show";
import { texts } from "./texts.operators";

const path = "/api/admin/settings";

/** A plan as texts, by its fields, features and limits. What it has not is not there. */
type Fields = Record<string, string>;

/** A plan, and what is entered of it. */
interface Entered { plan: PlanOffer; fields: Fields; fresh: boolean; gone: boolean }

/** All plans. What is entered stays while they are read again. */
export function PlanSet() {
  const read = useLoaded((signal) => call<ServiceSettings>("GET", path, { signal }),
    [resynced.value]);
  const entered = useEntry<Record<string, Fields>>("plans", {});
  const added = useEntry<string[]>("plans-added", []); // that are not set yet
  const gone = useEntry<string[]>("plans-gone", []);
  const sure = useSignal(false); // the changes are looked at
  const problem = useSignal(""); // the id of a field that is wrong, or that nothing is entered
  const act = useAct();
  const anew = () => {
    sure.value = false;
    problem.value = "";
  };
  const enter = (name: string, field: string, value: string) => {
    entered.value = { ...entered.value, [name]: { ...entered.value[name], [field]: value } };
    anew();
  };
  const drop = ({ plan, fresh }: Entered) => {
    if (fresh) {
      added.value = added.value.filter((name) => name !== plan.plan);
      entered.value = { ...entered.value, [plan.plan]: {} };
    } else {
      gone.value = gone.value.includes(plan.plan)
        ? gone.value.filter((name) => name !== plan.plan) : [...gone.value, plan.plan];
    }
    anew();
  };
  const look = (all: Entered[]) => {
    const bad = all.filter((one) => !one.gone).flatMap((one) => wrong(one)
      .map((field) => idOf(one, field)))[0];
    problem.value = bad ?? (all.every((one) => changesOf(one).length === 0) ? nothing : "");
    sure.value = problem.value === "";
    document.getElementById(problem.value)?.focus();
  };
  const set = async (now: PlanOffer[], all: Entered[]) => {
    const body = { plans: all.filter((one) => !one.gone).map(after) };
    const sent = { entered: entered.value, added: added.value, gone: gone.value };
    if (await act.run(body, async () => {
      const { plans, revision } = await call<ServiceSettings>("GET", path);
      if (JSON.stringify(plans) !== JSON.stringify(now)) {
        throw new Refused("plans_changed", texts.plansOther);
      }
      await call("PUT", path, { body: { ...body, revision } });
      return texts.plansDone;
    })) {
      entered.value = enteredSince(entered.value, sent.entered);
      added.value = added.value.filter((plan) => !sent.added.includes(plan));
      gone.value = gone.value.filter((name) => !sent.gone.includes(name));
    }
    sure.value = false;
    read.again();
  };
  return <>
    <h1 tabIndex={-1}>{texts.planSet}</h1>
    <p class="lead">{texts.plansLead}</p>
    <p class="hint">{texts.plansKeep}</p>
    <Shown of={read}>{({ plans }) => {
      const all = withFresh(plans, added.value).map((plan): Entered => ({ plan,
        fields: { ...fieldsOf(plan), ...entered.value[plan.plan] },
        fresh: !plans.some((other) => other.plan === plan.plan),
        gone: gone.value.includes(plan.plan) }));
      const names = namesOf(all.filter((one) => !one.gone));
      const refused = new Set(act.error?.items.map((item) => names[item.field ?? ""]?.id));
      return <>
        <form noValidate aria-label={texts.planSet} onSubmit={(event) => {
          event.preventDefault();
          look(all);
        }}>
          <div class="plans">{all.map((one) => <Card key={one.plan.plan} of={one}
            problem={problem.value} refused={refused} drop={() => drop(one)}
            enter={(field, value) => enter(one.plan.plan, field, value)} />)}</div>
          {problem.value && <p class="trouble" role="alert">{problem.value === nothing
            ? texts.plansSame : texts.plansBad}</p>}
          {!sure.value && <p><button aria-disabled={act.busy}>{texts.pricesLook}</button></p>}
        </form>
        {sure.value && <div class="card" role="group" aria-label={texts.plansSure}>
          <p><strong>{texts.plansSure}</strong></p>
          <ul>{all.map((one) => ({ one, said: changesOf(one) }))
            .filter(({ said }) => said.length > 0).map(({ one, said }) => <li key={one.plan.plan}>
              <strong>{called(one.plan)}</strong>: {said.join(" ")}</li>)}</ul>
          <p class="actions">
            <Do act={act} text={texts.plansSet} kind="danger" go={() => void set(plans, all)} />
            <Do act={act} text={texts.pricesBack} go={() => { sure.value = false; }} />
          </p>
        </div>}
        <Came of={act} names={Object.fromEntries(Object.entries(names)
          .map(([field, { label }]) => [field, label]))} />
        <AddPlan all={all} add={(name) => {
          added.value = [...added.value, name];
          anew();
        }} />
      </>;
    }}</Shown>
  </>;
}

const nothing = "-"; // no field has this id

const called = (plan: PlanOffer) => texts.plans[plan.plan] ?? plan.plan;

const idOf = ({ plan }: Entered, field: string) => `plan-${plan.plan}-${field}`;

/** The plans with those that are to come, each of which is the dearest at first. */
function withFresh(plans: PlanOffer[], added: string[]): PlanOffer[] {
  const top = Math.max(...plans.map((plan) => plan.level));
  return [...plans, ...added.filter((name) => !plans.some((plan) => plan.plan === name))
    .map((name, i) => ({ plan: name as PlanOffer["plan"], level: top + 1 + i, monthlyPrice: 0,
      features: [], limits: {}, offered: false }))];
}

function fieldsOf(plan: PlanOffer): Fields {
  return { monthlyPrice: String(plan.monthlyPrice), level: String(plan.level),
    offered: plan.offered ? "yes" : "",
    ...Object.fromEntries(plan.features.map((name) => [name, "yes"])),
    ...Object.fromEntries(Object.entries(plan.limits).map(([name, most]) =>
      [name, String(most)])) };
}

/** The features that a person may choose from, and the limits. */
const featuresOf = (plan: PlanOffer) =>
  [...new Set([...Object.keys(texts.features), ...plan.features])];
const limitsOf = (plan: PlanOffer) =>
  [...new Set([...Object.keys(texts.limits), ...Object.keys(plan.limits)])];

/** The fields of a plan that are no numbers. */
function wrong({ plan, fields }: Entered): string[] {
  const cents = (parseMoney(fields.monthlyPrice!) ?? NaN) / 1e4;
  return [...Number.isInteger(cents) ? [] : ["monthlyPrice"],
    ...wholeOf(fields.level) === undefined ? ["level"] : [],
    ...limitsOf(plan).filter((name) => fields[name]?.trim()
      && (wholeOf(fields[name]) ?? -1) < 0)];
}

function wholeOf(text = ""): number | undefined {
  return /^\s*-?\d{1,10}\s*$/.test(text) ? Number(text) : undefined;
}

/** A plan as it is entered. One that does not change stays as it is, in the order that it has. */
function after(one: Entered): PlanOffer {
  const { plan, fields } = one;
  return changesOf(one).length === 0 ? plan : { plan: plan.plan, level: Number(fields.level),
    monthlyPrice: parseMoney(fields.monthlyPrice!)! / 1e6, offered: fields.offered === "yes",
    features: featuresOf(plan).filter((name) => fields[name]),
    limits: Object.fromEntries(limitsOf(plan).filter((name) => fields[name]?.trim())
      .map((name) => [name, Number(fields[name])])) };
}

/** What becomes other in a plan, in sentences. */
function changesOf({ plan, fields, fresh, gone }: Entered): string[] {
  if (gone) {
    return [texts.planGone];
  }
  const before = fieldsOf(plan);
  const price = (of: Fields) => money(parseMoney(of.monthlyPrice!) ?? NaN);
  const most = (text = "") => text.trim() || texts.anyNumber;
  const listed = (names: string[]) => names.map((name) => texts.features[name] ?? name).join(", ");
  const got = featuresOf(plan).filter((name) => fields[name] && !before[name]);
  const lost = featuresOf(plan).filter((name) => !fields[name] && before[name]);
  return [...fresh ? [texts.planNew(price(fields))]
    : price(fields) !== price(before) ? [texts.planFrom(price(before), price(fields))] : [],
  ...fields.level!.trim() !== before.level ? [texts.levelFrom(before.level!, fields.level!)] : [],
  ...fields.offered !== before.offered
    ? [fields.offered ? texts.planOpens : texts.planCloses] : [],
  ...got.length > 0 ? [texts.planGets(listed(got))] : [],
  ...lost.length > 0 ? [texts.planLoses(listed(lost))] : [],
  ...limitsOf(plan).filter((name) => most(fields[name]) !== most(before[name])).map((name) =>
    texts.limitFrom(texts.limits[name] ?? name, most(before[name]), most(fields[name])))];
}

/** What a refusal calls a field: its label and its id on the page. */
function namesOf(sent: Entered[]): Record<string, { label: string; id: string }> {
  return Object.fromEntries(sent.flatMap((one, i) => [
    ["monthlyPrice", texts.planPrice], ["level", texts.level], ["offered", texts.planOffered],
    ["features", texts.planFeatures], ["limits", texts.planLimits],
    ...limitsOf(one.plan).map((name) => [`limits.${name}`, texts.limits[name] ?? name]),
  ].map(([field, label]) => [`plans[${i}].${field}`, { label: `${label} (${called(one.plan)})`,
    id: idOf(one, field!.replace("limits.", "")) }])));
}

/** A plan, to be changed. */
function Card(props: { of: Entered; problem: string; refused: Set<string | undefined>;
  enter: (field: string, value: string) => void; drop: () => void; }) {
  const { plan, fields, fresh, gone } = props.of;
  const field = (name: string, label: string, bad: string) => {
    const id = idOf(props.of, name);
    return <div key={name}>
      <label for={id}>{label}</label>
      <input id={id} class="short" inputMode="decimal" autocomplete="off" disabled={gone}
        value={fields[name] ?? ""} aria-describedby={props.problem === id ? `${id}-bad` : undefined}
        aria-invalid={props.problem === id || props.refused.has(id) || undefined}
        onInput={(e) => props.enter(name, e.currentTarget.value)} />
      {props.problem === id && <p class="trouble" id={`${id}-bad`}>{bad}</p>}
    </div>;
  };
  const check = (name: string, label: string) => {
    const id = idOf(props.of, name);
    return <label class="check" key={name}><input id={id} type="checkbox" disabled={gone}
      checked={fields[name] === "yes"} aria-invalid={props.refused.has(id) || undefined}
      onChange={(e) => props.enter(name, e.currentTarget.checked ? "yes" : "")} />{label}</label>;
  };
  return <section class="card" aria-label={called(plan)}>
    <div class="cardhead"><h2>{called(plan)}</h2>
      {plan.plan !== "STARTER" && <button type="button" class="plain" onClick={props.drop}
        aria-label={`${gone ? texts.planKept : texts.planDrop}: ${called(plan)}`}>
        {gone ? texts.planKept : texts.planDrop}</button>}</div>
    {fresh && <p class="note">{texts.planFresh}</p>}
    {gone && <p class="note">{texts.planGone}</p>}
    <div class="filter">{field("monthlyPrice", texts.planPrice, texts.amountBad)}
      {field("level", texts.level, texts.wholeBad)}</div>
    {check("offered", texts.planOffered)}
    <h3>{texts.planFeatures}</h3>
    {featuresOf(plan).map((name) => check(name, texts.features[name] ?? name))}
    <h3>{texts.planLimits}</h3>
    <p class="hint">{texts.planLimitsHint}</p>
    <div class="filter">{limitsOf(plan).map((name) => field(name, texts.limits[name] ?? name,
      texts.wholeBad))}</div>
  </section>;
}

/** Adds a plan of those that the catalogue has not. */
function AddPlan(props: { all: Entered[]; add: (name: string) => void }) {
  const chosen = useEntry("plan-name", "");
  const left = Object.entries(texts.plans).filter(([name]) =>
    !props.all.some(({ plan }) => plan.plan === name));
  return left.length === 0 ? null : <form noValidate aria-label={texts.planAdd}
    onSubmit={(event) => {
      event.preventDefault();
      props.add(left.some(([name]) => name === chosen.value) ? chosen.value : left[0]![0]);
    }}>
    <h2>{texts.planAdd}</h2>
    <Select id="plan-name" label={texts.plan} value={chosen} options={left} />
    <p><button>{texts.planAddDo}</button></p>
  </form>;
}
