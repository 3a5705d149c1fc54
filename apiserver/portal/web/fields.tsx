// What the fields of a run are like, and how that was in the runs before.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { FieldProfile, Job, JobPage, RunProfile } from "./schema.gen";
import { call, Refused } from "./api";
import { Shown, useLoaded } from "./load";
import { address } from "./route";
import { about, count, Scraped, ticks, visible, when } from "./show";
import { texts } from "./texts.fields";

const most = { runs: 12 }; // that are looked at

const share = new Intl.NumberFormat(navigator.languages as string[],
  { style: "percent", maximumFractionDigits: 1 });

const number = (n: number | null) => n === null ? "–" : about(n);

/** The measures of a field that are drawn over runs. */
const measures: Record<string, (f: FieldProfile) => number | null> = {
  fillRate: (f) => f.fillRate * 100, mean: (f) => f.mean, distinct: (f) => f.distinct };

/** The page of a place; undefined: there is none. */
export function page(parts: string[]) {
  return <Fields scraper={parts[1]!} job={parts[2]!} key={parts[2]} />;
}

/** The profile of a run. */
function Fields(props: { scraper: string; job: string }) {
  const { scraper, job } = props;
  const read = useLoaded((signal) => call<RunProfile>("GET", "/api/scraper/data/profile",
    { query: { jobId: job }, signal }), [job]);
  return <>
    <h1 tabIndex={-1}>{texts.fieldsTitle}</h1>
    <p><a href={address(`/runs/${scraper}/${job}`)}>{texts.runTitle}</a></p>
    <Shown of={read}>{(profile) => profile.fields.length === 0 ? <p>{texts.fieldsNone}</p> : <>
      <FieldTable of={profile} />
      {profile.moreFields && <p class="note">{texts.fieldsMore}</p>}
      <OverRuns scraper={scraper} fields={profile.fields} />
    </>}</Shown>
  </>;
}

function FieldTable(props: { of: RunProfile }) {
  const { of } = props;
  return <>
    <p>{texts.fieldsOf(count(of.fields.length), count(of.rows))}</p>
    <div class="scroll" tabIndex={0} role="region" aria-label={texts.fieldsTitle}><table>
      <caption class="unseen">{texts.fieldsTitle}</caption>
      <thead><tr><th scope="col">{texts.filterField}</th><th scope="col">{texts.filled}</th>
        <th scope="col">{texts.types}</th><th scope="col" class="n">{texts.distinct}</th>
        <th scope="col" class="n">{texts.least}</th><th scope="col" class="n">{texts.mean}</th>
        <th scope="col" class="n">{texts.greatest}</th><th scope="col">{texts.errorExample}</th>
      </tr></thead>
      <tbody>{of.fields.map((f) => <tr key={f.name}>
        <th scope="row"><Scraped value={f.name} most={60} /></th>
        <td><meter min={0} max={1} value={f.fillRate} aria-label={texts.filled} />{" "}
          {share.format(f.fillRate)}</td>
        <td>{Object.keys(f.types ?? {}).map((t) => texts.typesOf[t] ?? t).join(", ")}</td>
        <td class="n">{!f.distinctExact && "≈ "}{count(f.distinct)}</td>
        <td class="n">{number(f.min)}</td><td class="n">{number(f.mean)}</td>
        <td class="n">{number(f.max)}</td>
        <td><Scraped value={f.examples[0]} most={60} /></td>
      </tr>)}</tbody></table></div>
  </>;
}

/** A field of the last runs of a scraper that have ended, as a line and as a table. */
function OverRuns(props: { scraper: string; fields: FieldProfile[] }) {
  const field = useSignal(props.fields[0]!.name);
  const measure = useSignal("fillRate");
  const read = useLoaded(async (signal) => {
    const page = await call<JobPage>("GET", "/api/scraper/load-history", { query: {
      filters: JSON.stringify({ scraperId: props.scraper, state: "COMPLETED" }),
      size: most.runs }, signal });
    const runs: { run: Job; profile: RunProfile }[] = [];
    let gone = 0;
    for (const run of page.content.reverse()) { // one after the other: each may read many rows
      try {
        runs.push({ run, profile: await call<RunProfile>("GET", "/api/scraper/data/profile",
          { query: { jobId: run.id }, signal }) });
      } catch (e) {
        if (!(e instanceof Refused) || e.code === "network") {
          throw e;
        }
        gone++; // its rows are deleted, while its record stays
      }
    }
    return { runs, gone };
  }, [props.scraper]);
  return <section>
    <h2>{texts.overRuns}</h2>
    <div class="filter">
      <div><label for="of-field">{texts.filterField}</label>
        <select id="of-field" value={field.value}
          onChange={(e) => { field.value = e.currentTarget.value; }}>
          {props.fields.map((f) => <option key={f.name} value={f.name}>
            {visible(f.name, 60)}</option>)}</select></div>
      <div><label for="of-measure">{texts.measure}</label>
        <select id="of-measure" value={measure.value}
          onChange={(e) => { measure.value = e.currentTarget.value; }}>
          {Object.keys(measures).map((m) => <option key={m} value={m}>
            {texts.measures[m]}</option>)}</select></div>
    </div>
    <Shown of={read}>{({ runs, gone }) => {
      const values = runs.map(({ run, profile }) => {
        const of = profile.fields.find((f) => f.name === field.value);
        return { at: run.started ?? run.queued ?? "", value: of ? measures[measure.value]!(of)
          : null };
      });
      const drawn = values.filter((v) => v.value !== null).length;
      return drawn < 2 ? <p>{texts.overRunsFew}</p> : <>
        <Line values={values} label={texts.measures[measure.value]!} />
        {gone > 0 && <p class="hint">{texts.overRunsGone(count(gone))}</p>}
        <details class="plain"><summary>{texts.asTable}</summary><table>
          <thead><tr><th scope="col">{texts.started}</th>
            <th scope="col" class="n">{texts.measures[measure.value]}</th></tr></thead>
          <tbody>{values.map((v, i) => <tr key={i}><td>{when(v.at)}</td>
            <td class="n">{number(v.value)}</td></tr>)}</tbody></table></details>
      </>;
    }}</Shown>
  </section>;
}

// Colors are drawn into the chart: it is drawn again when the browser's scheme changes.
const scheme = matchMedia("(prefers-color-scheme: dark)");
const dark = signal(scheme.matches);
scheme.addEventListener("change", () => { dark.value = scheme.matches; });

/** A line over time. What it shows stands in a table, too. */
function Line(props: { values: { at: string; value: number | null }[]; label: string }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const style = getComputedStyle(box.current!);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line") } };
    const size = () => ({ width: Math.max(200, box.current?.clientWidth ?? 600), height: 260 });
    const plot = new uPlot({ ...size(), legend: { show: false }, cursor: { show: false },
      axes: [{ ...axis, values: (_plot, at, _axis, _space, apart) => ticks(at, apart) }, axis],
      series: [{}, { label: props.label, stroke: color("--accent"), width: 2,
        points: { show: true, size: 7, fill: color("--accent") } }] },
    [props.values.map((v) => Date.parse(v.at) / 1000), props.values.map((v) => v.value)],
    box.current!);
    const watch = new ResizeObserver(() => plot.setSize(size()));
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [JSON.stringify(props.values), dark.value]);
  return <div ref={box} class="plot" role="img" aria-label={props.label} />;
}
