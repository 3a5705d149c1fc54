// What the page of a comparison of two runs says.
import { so, texts as first } from "./texts";

export const texts = {
  ...first,
  changesTitle: "Changes",
  changesSince: "Compared with the run of",
  changesNone: "No run of this scraper has ended before this one.",
  changesSame: "The rows of both runs are the same.",
  changesOf: (added: string, removed: string, changed: string, same: string) =>
    `${so(added, "row")} added, ${removed} removed, ${changed} changed, ${same} as before.`,
  changesBy: "Rows are told apart by",
  changesByPlace: "Rows are told apart by the address of their page, and their place on it.",
  change: "Change",
  changeKinds: { ADDED: "Added", REMOVED: "Removed", CHANGED: "Changed" } as
    Record<string, string>,
  row: "Row",
  values: "Values",
  was: "before:",
};
