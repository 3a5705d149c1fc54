// Rows as they are read, by cursor.
import { signal } from "@preact/signals";
import type { Row, RowCursorPage } from "./schema.gen";
import { call, listNames, type Refused, rounds } from "./api";
import { refused } from "./load";

/** Which rows, in which order. */
export interface Wanted {
  group: string;
  job: string;
  scraper: string; // an id; "": all of the group
  field: string; // of the filter; "": none
  op: string;
  value: string;
  sort: string; // a field; "": as they came
  descending: boolean;
  category: string; // an id; "": none
}

// Bounds of what is kept and shown.
const size = 200; // rows of a page
const sizeSorted = 1_000; // each page of sorted rows looks at all of them again
const mostSkipped = 40_000; // the API's bound of sorted rows that are passed over
const mostHeld = 6_000; // rows in memory
const mostRows = 1_000_000; // each page of them has a cursor in memory

/** A page of rows: where it begins, and how it is read again. */
interface Page {
  first: number;
  count: number;
  cursor: string | undefined;
  skip: number; // rows between the cursor and the page
  rows?: Row[];
  used: number;
}

/** The number that the API reads a text as; undefined: none. */
function numberOf(text: string): number | undefined {
  const said = text.trim();
  const number = /^[+-]?\d+(\.\d+)?(e[+-]?\d+)?$/i.test(said) ? Number(said) : NaN;
  return Number.isFinite(number) ? number : undefined;
}

/** The filter, as the API takes it; undefined: none. */
function filterOf(want: Wanted): string | undefined {
  const { field, op, value } = want;
  if (!field) {
    return undefined;
  }
  const number = numberOf(value);
  let filter: object;
  if (op === "eq" || op === "ne") {
    // A cell shows a number or boolean like the text that spells it.
    const other = /^(true|false)$/.test(value) ? value === "true" : number;
    const same = number !== undefined && rounds(value)
      // A text of so many digits is an identifier, which equals no other one that rounds alike.
      ? { $or: [{ [field]: value }, { [field]: number, $nor: [{ [field]: { $startsWith: "" } }] }] }
      : { [field]: { $in: other === undefined ? [value] : [value, other] } };
    filter = op === "eq" ? same : { $nor: [same] };
  } else {
    filter = { [field]: { ["$" + op]: op === "exists" ? true
      : op === "contains" ? value : number ?? value } };
  }
  return JSON.stringify(filter);
}

/** Reads rows when they are needed, and keeps a bounded number of them. */
export class RowReader {
  /** How many rows are known to be there. */
  readonly known = signal(0);
  /** Whether there are more. */
  readonly more = signal(true);
  /** Whether the first answer is there. */
  readonly begun = signal(false);
  /** Whether there are more than can be shown. */
  readonly cut = signal(false);
  readonly error = signal<Refused | undefined>(undefined);
  readonly fields = signal<string[]>([]);
  /** Counts up when rows have come. */
  readonly changed = signal(0);

  private pages: Page[] = [];
  private next: string | undefined;
  private reading: Promise<void> | undefined;
  private clock = 0;
  private looks = 0;
  private looked: [first: number, last: number] = [0, 0];
  private readonly cancel = new AbortController();

  constructor(private readonly want: Wanted) {}

  /** What the rows are asked with, in an export, too. */
  get query() {
    const { group, job, scraper, category, sort, descending } = this.want;
    return { groupId: group, jobId: job || undefined, scraperId: scraper || undefined,
      filters: filterOf(this.want),
      categories: category || undefined,
      sort: sort ? `${sort},${descending ? "desc" : "asc"}` : undefined };
  }

  /** A text of the filter's field that holds a number but is none, if the filter compares with a
   * number: then it passes no such text. undefined: there is none. */
  async uncompared(signal: AbortSignal): Promise<unknown> {
    const { field, op, value } = this.want;
    if (!field || (op !== "gt" && op !== "lt") || numberOf(value) === undefined) {
      return undefined;
    }
    const filters = JSON.stringify({ [field]: { $regex: "[0-9]" },
      $nor: [{ [field]: { $gte: 0 } }, { [field]: { $lt: 0 } }] });
    const page = await call<RowCursorPage>("GET", "/api/scraper/data", { query: { ...this.query,
      filters, sort: undefined, fields: listNames([field]), limit: 1 }, signal });
    return page.items[0]?.[field];
  }

  /** Ends what is under way. */
  end(): void { this.cancel.abort(); }

  /** The row at a place, if it is in memory. */
  row(index: number): Row | undefined {
    const page = this.pageOf(index);
    if (page) {
      page.used = ++this.clock;
    }
    return page?.rows?.[index - page.first];
  }

  /** Reads what is looked at now. What was looked at before is not waited for any more. */
  async look(first: number, last: number): Promise<void> {
    const at = ++this.looks;
    this.looked = [first, last];
    const looking = () => at === this.looks;
    await this.need(first, looking);
    await this.need(last, looking);
  }

  /** Tries to read again what is looked at. */
  lookAgain(): void {
    this.error.value = undefined;
    void this.look(...this.looked);
  }

  /** Reads on until the row at a place is in memory, however far it is. */
  async reach(index: number): Promise<void> {
    while (!this.cancel.signal.aborted && this.more.value && this.known.value <= index) {
      await this.need(this.known.value, () => true, this.leap(index));
      if (this.error.value) {
        return;
      }
    }
    await this.need(index);
  }

  /** Reads until the row at a place is in memory, or there is none, as long as that is wanted. One
   * read is under way. What is read on passes over so many rows. */
  async need(index: number, wanted = () => true, over = 0): Promise<void> {
    while (!this.cancel.signal.aborted && wanted()) {
      if (this.reading) {
        await this.reading;
        continue;
      }
      const page = this.pageOf(index);
      if (page?.rows || (!page && (!this.more.value || index > this.known.value))) {
        return;
      }
      this.reading = (page ? this.reread(page) : this.readOn(over)).catch((error: unknown) => {
        if (!this.cancel.signal.aborted) {
          this.error.value = refused(error);
        }
      });
      await this.reading;
      this.reading = undefined;
      if (this.error.value) {
        return;
      }
    }
  }

  private get size(): number { return this.want.sort ? sizeSorted : size; }

  /** How many rows are passed over on the way to a place, in whole pages: sorted ones alone are. */
  private leap(index: number): number {
    const left = Math.min(index, mostRows - this.size) - this.known.value;
    return this.want.sort ? Math.max(0, wholePages(Math.min(left, mostSkipped))) : 0;
  }

  private pageOf(index: number): Page | undefined {
    let low = 0, high = this.pages.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1, page = this.pages[middle]!;
      if (index < page.first) {
        high = middle - 1;
      } else if (index >= page.first + page.count) {
        low = middle + 1;
      } else {
        return page;
      }
    }
    return undefined;
  }

  private async readOn(over: number): Promise<void> {
    this.error.value = undefined;
    const cursor = this.next;
    let skip = over, answer = await this.ask(cursor, skip, this.size);
    while (answer.rows.length === 0 && skip > 0) { // there are fewer
      skip = wholePages(skip / 2);
      answer = await this.ask(cursor, skip, this.size);
    }
    let first = this.known.value;
    for (let n = 0; n < skip; n += sizeSorted, first += sizeSorted) {
      this.pages.push({ first, count: sizeSorted, cursor, skip: n, used: 0 });
    }
    const { rows, next } = answer;
    this.pages.push({ first, count: rows.length, cursor, skip, rows, used: ++this.clock });
    this.next = next;
    this.cut.value = next !== undefined && first + rows.length >= mostRows;
    this.more.value = next !== undefined && !this.cut.value;
    this.known.value = first + rows.length;
    this.begun.value = true;
    this.keep();
    this.tell(rows);
  }

  private async reread(page: Page): Promise<void> {
    this.error.value = undefined;
    const { cursor, skip, count } = page;
    let { rows, next } = await this.ask(cursor, skip, count);
    while (this.want.sort && next !== undefined && rows.length < count) { // large ones come in parts
      const more = await this.ask(next, 0, count - rows.length);
      rows = [...rows, ...more.rows];
      next = more.next;
    }
    page.rows = rows;
    page.used = ++this.clock;
    this.keep();
    this.tell(rows);
  }

  private tell(rows: Row[]): void {
    const names = new Set(this.fields.value);
    const before = names.size;
    for (const row of rows) {
      Object.keys(row).filter((name) => !name.startsWith("_")).forEach((name) => names.add(name));
    }
    if (names.size > before) {
      this.fields.value = [...names];
    }
    this.changed.value++;
  }

  /** Forgets the rows that were not looked at for longest. Those without a cursor stay: read again,
   * they would be rows of now, while all others are rows of then. */
  private keep(): void {
    let held = 0;
    const lately = this.pages.filter((page) => page.rows && page.cursor !== undefined)
      .sort((a, b) => b.used - a.used);
    for (const page of lately) {
      held += page.count;
      if (held > mostHeld) {
        page.rows = undefined;
      }
    }
  }

  private async ask(cursor: string | undefined, skip: number, limit: number):
  Promise<{ rows: Row[]; next?: string }> {
    const page = await call<RowCursorPage>("GET", "/api/scraper/data", { query: { ...this.query,
      limit, cursor, skip: skip || undefined }, signal: this.cancel.signal, exact: true });
    return { rows: page.items, next: page.nextCursor ?? undefined };
  }
}

const wholePages = (rows: number) => Math.floor(rows / sizeSorted) * sizeSorted;
