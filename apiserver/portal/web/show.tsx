// How values are shown: numbers, money and dates by the browser's locale, and scraped text as text.
import type { ComponentChildren } from "preact";

const locale = navigator.languages as string[];
const whole = new Intl.NumberFormat(locale);
const short = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const time = new Intl.DateTimeFormat(locale, { dateStyle: "medium", timeStyle: "short" });

/** A whole number. */
export const count = (n: number) => whole.format(n);

/** A number with one digit behind the point. */
export const about = (n: number) => short.format(n);

/** An amount in micros, millionths of a euro, with as many digits as it has, up to six. */
export function money(micros: number, currency = "EUR"): string {
  return new Intl.NumberFormat(locale, { style: "currency", currency, minimumFractionDigits: 2,
    maximumFractionDigits: 6 }).format(micros / 1e6);
}

/** An amount in a currency, as invoices have it. */
export const currency = (amount: number, code: string) => new Intl.NumberFormat(locale,
  { style: "currency", currency: code.toUpperCase() }).format(amount);

/** A share of 100. */
export const percent = (n: number) => new Intl.NumberFormat(locale,
  { style: "percent", maximumFractionDigits: 1 }).format(n / 100);

// A number of a sentence, and its unit. What is a part of a date, a version, a name or an address
// is none, nor is what stands behind an abbreviation, as in RFC 3339.
const told = /(?<![\p{L}\d_.,:/-]|[A-Z] )-?\d{1,15}(?:\.(\d+))?(?:( EUR)\b|(%)|(?![\p{L}\d_:/%-]|[.,]\d))/gu;

/** A sentence of the service, with its numbers and amounts by the browser's locale. */
export const numbered = (said: string) => said.replace(told, (all, digits?: string,
  euro?: string, share?: string) => {
  const n = parseFloat(all);
  return euro ? money(Math.round(n * 1e6)) : share ? percent(n)
    : digits ? new Intl.NumberFormat(locale, { minimumFractionDigits: digits.length }).format(n)
    : /^-?\d{5,}$/.test(all) ? count(n) : all; // fewer digits may be a year or a code
});

/** A time of the API; "–" for none. */
export const when = (text: string | null | undefined) =>
  text ? time.format(new Date(text)) : "–";

const month = new Intl.DateTimeFormat(locale, { month: "long", year: "numeric" });
const date = new Intl.DateTimeFormat(locale, { dateStyle: "full" });
const hours = new Intl.DateTimeFormat(locale, { hour: "2-digit", minute: "2-digit" });
const weekday = new Intl.DateTimeFormat(locale, { weekday: "short" });

/** A month, by its name and year. */
export const monthOf = (of: Date) => month.format(of);

/** A day, in full. */
export const day = (of: Date) => date.format(of);

/** A time of the day. */
export const clock = (of: Date) => hours.format(of);

const dayShort = new Intl.DateTimeFormat(locale, { day: "numeric", month: "short" });
const seconds = new Intl.DateTimeFormat(locale, { timeStyle: "medium" });

/** Times of an axis, so many seconds apart. The first of each day says the day. */
export const ticks = (at: number[], apart: number) => at.map((s, i) => {
  const of = new Date(s * 1000);
  const turns = i === 0 || new Date(at[i - 1]! * 1000).toDateString() !== of.toDateString();
  return apart >= 86_400 ? dayShort.format(of)
    : (turns ? dayShort.format(of) + "\n" : "") + (apart < 60 ? seconds : hours).format(of);
});

/** The names of seven days from one on. */
export const weekdays = (from: Date) => [0, 1, 2, 3, 4, 5, 6].map((n) =>
  weekday.format(new Date(from.getFullYear(), from.getMonth(), from.getDate() + n)));

/** A number in a unit, as Intl names it. */
const inUnit = (n: number, unit: string) => new Intl.NumberFormat(locale,
  { style: "unit", unit, maximumFractionDigits: 1 }).format(n);

const units = ["byte", "kilobyte", "megabyte", "gigabyte", "terabyte"];

/** A number of bytes, in the unit that suits it. */
export function bytes(n: number): string {
  const at = Math.min(units.length - 1, n < 1 ? 0 : Math.floor(Math.log10(n) / 3));
  return inUnit(n / 1000 ** at, units[at]!);
}

/** Milliseconds, as minutes and seconds. */
export function duration(ms: number | null | undefined): string {
  if (ms == null) {
    return "–";
  }
  const seconds = Math.round(ms / 1000);
  return seconds < 60 ? inUnit(ms / 1000, "second")
    : `${inUnit(Math.floor(seconds / 60), "minute")} ${inUnit(seconds % 60, "second")}`;
}

/** An amount in micros, as a person would enter it: not as one that looks like thousands. */
export function entered(micros: number): string {
  const written = (digits: number) => new Intl.NumberFormat(locale, { useGrouping: false,
    minimumFractionDigits: digits, maximumFractionDigits: 6, numberingSystem: "latn" })
    .format(micros / 1e6);
  return Number.isNaN(parseMoney(written(0))) ? written(4) : written(0);
}

/** Seconds to wait, in the unit that suits them. */
export const pause = (seconds: number) => {
  const [n, unit] = seconds < 120 ? [seconds, "second"]
    : seconds < 7200 ? [seconds / 60, "minute"] : [seconds / 3600, "hour"];
  return new Intl.NumberFormat(locale, { style: "unit", unit, unitDisplay: "long" })
    .format(Math.ceil(n));
};

/** The signs between thousands, which in some places differ in plain numbers and in amounts. */
const thousands = ([{}, { style: "currency", currency: "EUR" }] as const).map((style) =>
  new Intl.NumberFormat(locale, { numberingSystem: "latn", ...style })
    .formatToParts(1_234_567).find((part) => part.type === "group")?.value);

/** An amount that a person has entered, in micros; undefined: none, NaN: no amount. The point and
 * the comma are both decimal signs. But who writes 1,000 for a thousand does not mean one. */
export function parseMoney(text: string): number | undefined {
  const said = text.trim().replace(/\s|€/g, "");
  if (said === "") {
    return undefined;
  }
  const grouped = /^[1-9]\d{0,2}([.,])\d{3}$/.exec(said)?.[1];
  return /^\d{1,9}([.,]\d{1,6})?$/.test(said) && (!grouped || !thousands.includes(grouped))
    ? Math.round(Number(said.replace(",", ".")) * 1e6) : NaN;
}

// What moves other text about (bidirectional controls) or is not seen at all.
const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g;

function symbol(c: string): string {
  const code = c.charCodeAt(0);
  if (code < 0x20) {
    return String.fromCharCode(0x2400 + code);
  }
  return code === 0x7f ? "\u2421" : `\u27e8U+${code.toString(16).toUpperCase().padStart(4, "0")}\u27e9`;
}

/** Scraped text as one can see it: what has no shape of its own is a symbol. */
export function visible(text: string, most: number, lines = false): string {
  let cut = text;
  if (text.length > most) {
    const half = /[\ud800-\udbff]$/.test(text.slice(0, most)) ? most - 1 : most; // of a pair
    cut = text.slice(0, half);
  }
  const shown = cut.replace(hidden, (c) => lines && c === "\n" ? c : symbol(c));
  return text.length > cut.length ? `${shown} … (+${count(text.length - cut.length)})` : shown;
}

/** What of several is to be chosen. Those that share a name have their ids behind it. */
export function choices(all: { id: string; name: string }[]): [id: string, text: string][] {
  const named = new Map<string, number>();
  all.forEach((one) => named.set(one.name, (named.get(one.name) ?? 0) + 1));
  return all.map(({ id, name }) => [id, named.get(name) === 1 ? visible(name, 60)
    : `${visible(name, 50)} (${id})`]);
}

/** A value of a row as text. A number stays as it is: it may be a year or an id. One that is kept as
 * it was written is a thing of JSON. */
export function asText(value: unknown): string {
  if (value === null || value === undefined) {
    return "";
  }
  return typeof value === "string" ? value
    : typeof value === "number" ? String(value) : JSON.stringify(value);
}


/** Scraped text, isolated: it changes neither the direction nor the shape of what is around it. */
export function Scraped(props: { value: unknown; most?: number; lines?: boolean }) {
  return <bdi class="scraped">
    {visible(asText(props.value), props.most ?? 200, props.lines)}
  </bdi>;
}

/** A name and its value, of a list of them. */
export function Fact(props: { name: string; children: ComponentChildren }) {
  return <div class="fact"><dt>{props.name}</dt><dd>{props.children}</dd></div>;
}
