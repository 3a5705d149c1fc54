// Who works with keys stays where they are when what they have pressed goes away, as a button does
// in whose place the page asks whether one is sure.

// What takes the focus over. Nothing that destroys does: a key that is held down presses it, too.
const heirs = "a[href], button:not(.danger), input, select, textarea, summary, [tabindex='0']";

/** Gives the focus to what stands nearest, whenever what had it was taken from the page. */
export function keepFocus(within: HTMLElement): void {
  let had: { node: Node; path: string } | undefined;
  addEventListener("focusin", (event) => {
    had = { node: event.target as Node, path: location.pathname };
  });
  addEventListener("focusout", () => queueMicrotask(() => {
    if (had?.node.isConnected && document.activeElement === document.body) {
      had = undefined; // a person has left it
    }
  }));
  new MutationObserver((changes) => {
    const gone = had;
    if (!gone || gone.node.isConnected || document.activeElement !== document.body) {
      return;
    }
    had = undefined;
    const place = changes.find((c) => [...c.removedNodes].some((n) => n.contains(gone.node)));
    if (!place || location.pathname !== gone.path) {
      return; // of another page its heading has the focus
    }
    const before = place.previousSibling;
    for (let around = place.target as Element | null; around && around !== within;
      around = around.parentElement) {
      const found = [...around.querySelectorAll<HTMLElement>(heirs)].filter((e) =>
        e.tabIndex >= 0 && e.checkVisibility());
      const heir = found.find((e) => !before
        || before.compareDocumentPosition(e) === Node.DOCUMENT_POSITION_FOLLOWING) ?? found.at(-1);
      if (heir) {
        heir.focus({ preventScroll: true });
        return;
      }
    }
  }).observe(within, { childList: true, subtree: true });
}
