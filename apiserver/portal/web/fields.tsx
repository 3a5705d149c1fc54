// What the fields of a run are like, and how that was in the runs before.
import { signal, useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";
import type { FieldProfile, Job, JobPage, NumberBucket, RunProfile } from "./schema.gen";
import { call, Refused } from "./api";
import { Shown, useLoaded } from "./load";
import { address } from "./route";
import { count, Scraped, ticks, visible, when } from "./show";
import { texts } from "./texts.fields";

const most = { runs: 12, // that are looked at
  marks: 6, // of an axis
  decades: 1e9 }; // how much greater the greatest number of a chart is than the least

const share = new Intl.NumberFormat(navigator.languages as string[],
  { style: "percent", maximumFractionDigits: 1 });

const few = new Intl.NumberFormat(navigator.languages as string[],
  { notation: "compact", maximumSignificantDigits: 3 });

/** A number of a chart. */
const short = (n: number) => few.format(n);

const edge = new Intl.NumberFormat(navigator.languages as string[],
  { maximumSignificantDigits: 6, maximumFractionDigits: 1, roundingPriority: "morePrecision" });

const number = (n: number | null) => n === null ? "–" : edge.format(n);

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
      <Spread fields={profile.fields.filter((f) => f.histogram.length > 0)} />
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

/** Where the numbers of a field lie. */
function Spread(props: { fields: FieldProfile[] }) {
  const named = useSignal("");
  const field = props.fields.find((f) => f.name === named.value) ?? props.fields[0];
  if (!field) {
    return null;
  }
  const parts = field.histogram;
  return <section>
    <h2>{texts.spread}</h2>
    <div class="filter"><div><label for="spread-of">{texts.filterField}</label>
      <select id="spread-of" value={field.name}
        onChange={(e) => { named.value = e.currentTarget.value; }}>
        {props.fields.map((f) => <option key={f.name} value={f.name}>
          {visible(f.name, 60)}</option>)}</select></div></div>
    {parts.length === 1 ? <p>{parts[0]!.from === parts[0]!.to
      ? texts.spreadOne(edge.format(parts[0]!.from))
      : texts.spreadNear(edge.format(parts[0]!.from), edge.format(parts[0]!.to))}</p> : <>
      <Bars parts={parts} label={texts.spread} />
      <p class="hint">{texts.spreadHint}</p>
      <details class="plain"><summary>{texts.asTable}</summary><table>
        <thead><tr><th scope="col" class="n">{texts.from}</th>
          <th scope="col" class="n">{texts.to}</th>
          <th scope="col" class="n">{texts.rows}</th></tr></thead>
        <tbody>{parts.map((p, i) => <tr key={i}><td class="n">{edge.format(p.from)}</td>
          <td class="n">{edge.format(p.to)}</td><td class="n">{count(p.count)}</td></tr>)}
        </tbody></table></details></>}
  </section>;
}

/** What says that the rows of a run are deleted, or its record. */
const removed = ["rows_gone", "job_not_found"];

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
        if (!(e instanceof Refused) || !removed.includes(e.code)) {
          throw e;
        }
        gone++;
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
        <Line values={values} label={texts.measures[measure.value]!}
          high={measure.value === "fillRate" ? 100 : undefined} />
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

/** What a chart is of, in the colors of the page. */
type Drawn = (color: (name: string) => string, axis: uPlot.Axis) =>
  Pick<uPlot.Options, "axes" | "series" | "scales">;

/** A chart. What it shows stands in a table, too. */
function Chart(props: { data: uPlot.AlignedData; label: string; of: Drawn }) {
  const box = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const style = getComputedStyle(box.current!);
    const color = (name: string) => style.getPropertyValue(name).trim();
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 },
      ticks: { stroke: color("--line") } };
    const size = () => ({ width: Math.max(200, box.current?.clientWidth ?? 600), height: 260 });
    const plot = new uPlot({ ...size(), legend: { show: false }, cursor: { show: false },
      ...props.of(color, axis) }, props.data, box.current!);
    const watch = new ResizeObserver(() => plot.setSize(size()));
    watch.observe(box.current!);
    return () => {
      watch.disconnect();
      plot.destroy();
    };
  }, [JSON.stringify(props.data), dark.value]);
  return <div ref={box} class="plot" role="img" aria-label={props.label} />;
}

/** A line over time. The axis is from nothing to high, where that is known. */
function Line(props: { values: { at: string; value: number | null }[]; label: string;
  high?: number; }) {
  const { high } = props;
  return <Chart label={props.label} data={[props.values.map((v) => Date.parse(v.at) / 1000),
    props.values.map((v) => v.value)]} of={(color, axis) => ({
      scales: { y: high === undefined ? {} : { range: [0, high * 1.05] } },
      axes: [{ ...axis, values: (_plot, at, _axis, _space, apart) => ticks(at, apart) }, axis],
      series: [{}, { label: props.label, stroke: color("--accent"), width: 2,
        points: { show: true, size: 7, fill: color("--accent") } }] })} />;
}

/** How far apart marks of counts may be. */
const wholes = [1, 2, 5].flatMap((n) => Array.from({ length: 15 }, (_, i) => n * 10 ** i))
  .sort((a, b) => a - b);

/** Bars as wide as the parts, on an axis where small and great numbers have as much room: a part is
 * as wide as another one by what it is of its numbers. */
function Bars(props: { parts: NumberBucket[]; label: string }) {
  const { parts } = props;
  const edges = [...new Set(parts.flatMap((p) => [p.from, p.to]))];
  const greatest = Math.max(...edges.map(Math.abs));
  // below it the axis is even: nothing lies there but zero, or what is nearly that
  const least = Math.min(...edges.map(Math.abs).filter((e) => e > greatest / most.decades));
  const place = (n: number) => Math.asinh(n / least);
  const narrow = Math.min(...parts.map((p) => place(p.to) - place(p.from)).filter((w) => w > 0));
  const xs: number[] = [], ys: number[] = [];
  parts.forEach((p, i) => { // zeros have no width of their own
    const end = Math.min(Math.max(place(p.to), place(p.from) + narrow),
      place(parts[i + 1]?.from ?? Infinity));
    xs.push(place(p.from), end);
    ys.push(p.count, 0);
  });
  const low = xs[0]!, high = xs.at(-1)!;
  const marks = [...new Set(Array.from({ length: most.marks }, (_, i) => {
    const at = low + (high - low) * i / (most.marks - 1);
    return edges.reduce((a, b) => Math.abs(place(b) - at) < Math.abs(place(a) - at) ? b : a);
  }))];
  return <Chart label={props.label} data={[xs, ys]} of={(color, axis) => ({
    scales: { x: { time: false, range: [low, high] },
      y: { range: (_plot, _low, high) => [0, high * 1.05] } },
    axes: [{ ...axis, splits: () => marks.map(place), values: () => marks.map((m) => short(m)) },
      { ...axis, incrs: wholes, values: (_plot, counts) => counts.map((n) => short(n)) }],
    series: [{}, { label: props.label, stroke: color("--accent"), fill: color("--accent") + "55",
      width: 1, points: { show: false }, paths: uPlot.paths.stepped!({ align: 1 }) }] })} />;
}
