// The plan, where a customer has one, and what there is to choose.
import type { Invoice, PlanFeatures, PlanPrice, Subscription } from "./schema.gen";
import { call } from "./api";
import { Came, Do, Pager, Table, useAct, usePage } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { stays } from "./route";
import { count, currency, Fact, Scraped, when } from "./show";
import { texts } from "./texts.account";
import { takesPayments } from "./wallet";

/** The plan and its invoices. */
export function Plan() {
  const now = useLoaded((signal) => call<Subscription>("GET", "/api/subscription", { signal }),
    [resynced.value]);
  const offer = useLoaded(async (signal) => {
    const [features, prices] = await Promise.all([
      call<PlanFeatures[]>("GET", "/api/plan-features", { signal }),
      call<PlanPrice[]>("GET", "/api/subscription/prices", { signal })]);
    return { features, prices };
  }, []);
  const invoices = usePage<Invoice>("/api/billing-history", {});
  const act = useAct();
  const move = (what: string, body?: unknown) => act.run([what, body], async () => {
    const here = stays();
    const got = await call<Subscription>("POST", `/api/subscription/${what}`, { body });
    if (got.payment) {
      if (here()) {
        location.assign(got.payment.url);
      }
      return texts.topUpLeads;
    }
    now.again();
    return texts.saved;
  });
  return <>
    <h1 tabIndex={-1}>{texts.plan}</h1>
    <Shown of={now}>{(s) => <>
      {s.plan === null ? <p class="lead">{texts.planNone}</p> : <dl class="facts">
        <Fact name={texts.plan}>{texts.plans[s.plan] ?? s.plan}</Fact>
        <Fact name={texts.state}>{texts.planStates[s.status] ?? s.status}</Fact>
        <Fact name={texts.planUntil}>{when(s.currentPeriodEnd)}</Fact>
        <Fact name={texts.planThen}>{s.scheduledPlan
          ? texts.plans[s.scheduledPlan] ?? s.scheduledPlan : "–"}</Fact></dl>}
      <p class="actions">
        {takesPayments && s.status === "ACTIVE" && !s.scheduledPlan && <Do act={act} text={texts.planCancel}
          go={() => void move("cancel")} />}
        {takesPayments && s.scheduledPlan && <Do act={act} text={texts.planKeep}
          go={() => void move("cancel-downgrade")} />}</p>
      <Came of={act} />
      <h2>{texts.planChoose}</h2>
      {!takesPayments && <p class="note">{texts.planNoProvider}</p>}
      <Shown of={offer}>{({ features, prices }) => <div class="plans">
        {features.map((f) => {
          const price = prices.find((p) => p.plan === f.plan);
          const name = texts.plans[f.plan] ?? f.plan;
          return <section class="card" key={f.plan} aria-label={name}>
            <h3>{name}</h3>
            <p><strong>{currency(price?.monthly.amount ?? f.monthlyPrice,
              price?.monthly.currency ?? "EUR")}</strong> {texts.planMonth}</p>
            <ul>{f.features.map((x) => <li key={x}>{texts.features[x] ?? x}</li>)}
              {Object.entries(f.limits).map(([x, n]) => <li key={x}>
                {texts.limits[x] ?? x}: {count(Number(n))}</li>)}</ul>
            {s.plan === f.plan ? <p class="note">{texts.planYours}</p>
              : takesPayments && price && <Do act={act} text={texts.planTake} of={name} go={() =>
                void move(s.status === "ACTIVE" ? "change" : "create", { plan: f.plan })} />}
          </section>;
        })}</div>}</Shown>
    </>}</Shown>
    <h2>{texts.invoices}</h2>
    <Shown of={invoices}>{(page) => <>
      <Table caption={texts.invoices} items={page.content} none={texts.invoicesNone} columns={[
        { name: texts.at, of: (i) => when(i.issuedAt) },
        { name: texts.amountOf, n: true, of: (i) => currency(i.amount, i.currency) },
        { name: texts.state, of: (i) => texts.invoiceStates[i.status] ?? i.status },
        { name: texts.invoice, of: (i) => i.hostedInvoiceUrl
          && /^https:\/\//.test(i.hostedInvoiceUrl)
          ? <a href={i.hostedInvoiceUrl} rel="noopener noreferrer" target="_blank">
            <Scraped value={i.id} most={40} /></a> : <Scraped value={i.id} most={40} /> }]} />
      <Pager of={page} at={invoices.at} /></>}</Shown>
  </>;
}
