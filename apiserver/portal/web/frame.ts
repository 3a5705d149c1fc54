// A page of somebody else, shown so that fields can be picked on it. It is made of elements and
// texts that the API answers: names of a closed list, no attribute of the page, no markup that a
// parser reads. The frame runs no scripts, and what is in it asks for nothing.
import type { PageNode } from "./schema.gen";
import { visible } from "./show";
import { building } from "./texts.builder";

/** A page that is shown. */
export interface Showing {
  /** Marks elements, by field. */
  mark(matches: number[][]): void;
  end(): void;
}

const most = 400; // characters of a text
const colors = 6; // of fields; more take them again

// Names that the frame makes, whatever it is told.
const names = new Set(("a abbr address article aside b blockquote br caption cite code dd del dfn "
  + "div dl dt em figcaption figure footer h1 h2 h3 h4 h5 h6 header hr i ins kbd li main mark nav "
  + "ol p pre q s samp section small span strong sub sup table tbody td tfoot th thead time tr u "
  + "ul var").split(" "));

const looks = `
  :root { color-scheme: light dark; font: 15px/1.45 system-ui, sans-serif; }
  body { margin: 8px; overflow-wrap: anywhere; }
  body * { cursor: pointer; unicode-bidi: isolate; max-width: 100%; }
  table { border-collapse: collapse } td, th { border: 1px solid #8a8f9866; padding: 2px 6px; }
  [data-image] { border: 1px dashed #8a8f98; border-radius: 4px; padding: 0 6px; }
  [data-over] { outline: 2px dashed #8a8f98; outline-offset: 1px; }
  :focus { outline: 3px solid Highlight; outline-offset: 2px; }
  [data-field] { outline: 2px solid var(--c); outline-offset: 1px; }
  [data-field="0"] { --c: #2f7fd6 } [data-field="1"] { --c: #c4660a }
  [data-field="2"] { --c: #2e9e5b } [data-field="3"] { --c: #b04ac7 }
  [data-field="4"] { --c: #d1405a } [data-field="5"] { --c: #7a8a00 }`;

/** Shows a page in a frame that has nothing yet, and tells which element is picked. */
export function show(frame: HTMLIFrameElement, nodes: PageNode[],
  pick: (element: number) => void): Showing {
  const page = frame.contentDocument!;
  const sheet = new (frame.contentWindow as Window & typeof globalThis).CSSStyleSheet();
  sheet.replaceSync(looks);
  page.adoptedStyleSheets = [sheet];
  const elements: (HTMLElement | undefined)[] = [];
  const numbers = new Map<EventTarget, number>();
  page.body.replaceChildren();
  page.body.tabIndex = 0;
  nodes.forEach((node, i) => {
    const around = elements[node.in] ?? page.body;
    if (!node.name) {
      around.append(visible(node.text ?? "", most, true));
      return;
    }
    const made = page.createElement(names.has(node.name) ? node.name : "span");
    if (node.name === "img") {
      made.dataset.image = "";
      made.textContent = `${building.image} ${visible(node.text ?? "", 100)}`;
    }
    elements[i] = made;
    numbers.set(made, i);
    around.append(made);
  });
  const cancel = new AbortController();
  const on = <K extends keyof DocumentEventMap>(name: K, take: (event: DocumentEventMap[K]) => void) =>
    page.addEventListener(name, take, { signal: cancel.signal });
  let over: HTMLElement | undefined;
  on("mouseover", (event) => {
    delete over?.dataset.over;
    over = numbers.has(event.target!) ? event.target as HTMLElement : undefined;
    if (over) {
      over.dataset.over = "";
    }
  });
  const take = (event: Event) => {
    const number = numbers.get(event.target!);
    event.preventDefault();
    if (number !== undefined) {
      pick(number);
    }
  };
  on("click", take);
  on("keydown", (event) => {
    const at = page.activeElement as HTMLElement | null ?? page.body;
    const to = step(at, event.key);
    if (to && numbers.has(to)) {
      event.preventDefault();
      to.tabIndex = -1;
      to.focus();
    } else if (event.key === "Enter") {
      take(event);
    }
  });
  let marked: HTMLElement[] = [];
  return {
    mark(matches) {
      marked.forEach((element) => { delete element.dataset.field; });
      marked = [];
      matches.forEach((found, field) => found.forEach((number) => {
        const element = elements[number];
        if (element) {
          element.dataset.field = String(field % colors);
          marked.push(element);
        }
      }));
    },
    end() { cancel.abort(); },
  };
}

/** Where an arrow key leads: down and up in the page's order, right into an element, left out. */
function step(at: Element, key: string): HTMLElement | null | undefined {
  switch (key) {
    case "ArrowRight": return at.firstElementChild as HTMLElement | null;
    case "ArrowLeft": return at.parentElement;
    case "ArrowUp": return (at.previousElementSibling ?? at.parentElement) as HTMLElement | null;
    case "ArrowDown":
      for (let up: Element | null = at; up; up = up.parentElement) {
        if (up.nextElementSibling && at !== at.ownerDocument.body) {
          return up.nextElementSibling as HTMLElement;
        }
      }
      return at.firstElementChild as HTMLElement | null;
  }
  return undefined;
}
