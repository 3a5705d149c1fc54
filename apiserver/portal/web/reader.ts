// Rows as they are read: by cursor as they came, by pages where they are sorted.
import { signal } from "@preact/signals";
import type { Row, RowCursorPage, RowPage } from "./schema.gen";
import { call, type Refused } from "./api";
import { refused } from "./load";

/** Which rows, in which order. */
export interface Wanted {
  group: string;
  job: string;
  field: string; // of the filter; "": none
  op: string;
  value: string;
  sort: string; // a field; "": as they came
  descending: boolean;
  category: string; // an id; "": none
}

// Bounds of what is kept and shown.
const size = 200; // rows of a page
const mostPages = 30; // in memory
const mostRows = 1_000_000; // each page of them has a cursor in memory
const mostSorted = 100_000; // the API's bound of pages (decision 19)

/** A page of rows: where it begins, and how it is read again. */
interface Page {
  first: number;
  count: number;
  cursor: string | undefined;
  rows?: Row[];
  used: number;
}

/** The filter, as the API takes it; undefined: none. */
function filterOf(want: Wanted): string | undefined {
  const all: Record<string, unknown>[] = [];
  if (want.field) {
    const number = want.value.trim() !== "" && Number.isFinite(Number(want.value));
    const value = want.op === "exists" ? true
      : number && want.op !== "contains" ? Number(want.value) : want.value;
    all.push({ [want.field]: { ["$" + want.op]: value } });
  }
  if (want.job && want.sort) { // pages have no parameter for it
    all.push({ _jobId: { $eq: want.job } });
  }
  return all.length === 0 ? undefined
    : JSON.stringify(all.length === 1 ? all[0] : { $and: all });
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
  private readonly cancel = new AbortController();

  constructor(private readonly want: Wanted) {}

  /** What an export of the same rows is asked with. */
  get query() {
    const { group, job, category } = this.want;
    return { groupId: group, jobId: job || undefined, filters: filterOf(this.want),
      categories: category || undefined };
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

  /** Reads until the row at a place is in memory, or there is none. One read is under way. */
  async need(index: number): Promise<void> {
    while (!this.cancel.signal.aborted) {
      if (this.reading) {
        await this.reading;
        continue;
      }
      const page = this.pageOf(index);
      if (page?.rows || (!page && (!this.more.value || index > this.known.value))) {
        return;
      }
      this.reading = (page ? this.reread(page) : this.readOn()).catch((error: unknown) => {
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

  /** Reads on until the row at a place is in memory, however far it is. */
  async reach(index: number): Promise<void> {
    while (!this.cancel.signal.aborted && this.more.value && this.known.value <= index) {
      await this.need(this.known.value);
      if (this.error.value) {
        return;
      }
    }
    await this.need(index);
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

  private async readOn(): Promise<void> {
    this.error.value = undefined;
    const cursor = this.next;
    const { rows, next } = await this.ask(cursor);
    const page: Page = { first: this.known.value, count: rows.length, cursor, rows,
      used: ++this.clock };
    this.pages.push(page);
    this.next = next;
    const most = this.want.sort ? mostSorted : mostRows;
    this.cut.value = next !== undefined && page.first + page.count >= most;
    this.more.value = next !== undefined && !this.cut.value;
    this.known.value = page.first + page.count;
    this.begun.value = true;
    this.keep();
    this.tell(rows);
  }

  private async reread(page: Page): Promise<void> {
    this.error.value = undefined;
    page.rows = (await this.ask(page.cursor)).rows;
    page.used = ++this.clock;
    this.keep();
    this.tell(page.rows);
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

  /** Forgets the rows that were not looked at for longest. */
  private keep(): void {
    const held = this.pages.filter((page) => page.rows);
    held.sort((a, b) => a.used - b.used).slice(0, -mostPages).forEach((page) => {
      page.rows = undefined;
    });
  }

  private async ask(cursor: string | undefined): Promise<{ rows: Row[]; next?: string }> {
    const { signal } = this.cancel;
    const filters = filterOf(this.want);
    if (!this.want.sort) {
      const page = await call<RowCursorPage>("GET", "/api/scraper/data",
        { query: { ...this.query, limit: size, cursor }, signal });
      return { rows: page.items, next: page.nextCursor ?? undefined };
    }
    const number = Number(cursor ?? 0);
    const sort = `${this.want.sort},${this.want.descending ? "desc" : "asc"}`;
    const page = await call<RowPage>("GET", `/api/scraper/data/group/${this.want.group}`,
      { query: { page: number, size, sort, filters,
        categories: this.want.category || undefined }, signal });
    return { rows: page.content,
      next: number + 1 < page.totalPages ? String(number + 1) : undefined };
  }
}
