// Where the page is. An address names all that is shown, so that a reload shows the same.
import { signal } from "@preact/signals";

const root = "/portal";

/** The place, below the portal, and the query behind it. */
export const place = signal(read());

function read(): { path: string; query: URLSearchParams } {
  const path = location.pathname.slice(root.length).replace(/\/+$/, "") || "/";
  return { path, query: new URLSearchParams(location.search) };
}

/** The address of a place. */
export function address(path: string, query?: Record<string, string>): string {
  const said = query ? new URLSearchParams(query).toString() : "";
  return root + (path === "/" ? "" : path) + (said && "?" + said);
}

/** Goes to a place. Where only the query changes, the history keeps one entry. */
export function go(to: string, replace = false): void {
  if (replace) {
    history.replaceState(null, "", to);
  } else {
    history.pushState(null, "", to);
    scrollTo(0, 0);
  }
  place.value = read();
}

/** Tells later whether a person is still at the same place. An answer leads nobody on who has gone
 * elsewhere meanwhile. */
export function stays(): () => boolean {
  const from = place.value;
  return () => place.value === from;
}

// The heading that was told of, and where it stood.
let told: { heading?: HTMLElement; path?: string } = {};

/** Tells of a page that is there: who goes to another one hears and reads its heading first. */
export function arrive(product: string): void {
  const heading = document.querySelector<HTMLElement>("h1");
  if (!heading) {
    return; // the page is still on its way
  }
  document.title = `${heading.textContent ?? ""} – ${product}`;
  if (told.heading && (told.heading !== heading || told.path !== location.pathname)) {
    heading.focus();
  }
  told = { heading, path: location.pathname };
}

/** Takes clicks on links to places, and the browser's way back. */
export function follow(): void {
  addEventListener("popstate", () => { place.value = read(); });
  addEventListener("click", (event) => {
    const link = (event.target as Element).closest?.("a");
    if (!link || event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey
      || event.shiftKey || event.altKey || link.target || link.hasAttribute("download")
      || link.origin !== location.origin || link.hash
      || !(link.pathname === root || link.pathname.startsWith(root + "/"))) {
      return;
    }
    event.preventDefault();
    go(link.pathname + link.search);
  });
}
