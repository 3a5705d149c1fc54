// The texts of the page that compares two runs.
import { so, texts as first } from "./texts";

export const texts = {
  ...first,
  changesTitle: "Changes",
  changesSince: "Compared with the run of",
  changesNone: "No earlier run of this scraper has ended.",
  changesSame: "The rows of both runs are the same.",
  changesOf: (added: string, removed: string, changed: string, same: string) =>
    `${so(added, "row")} added, ${removed} removed, ${changed} changed, ${same} unchanged.`,
  changesBy: "Rows are matched by",
  changesByPlace: "Rows are matched by the address of their page, and their place on it.",
  change: "Change",
  changeKinds: { ADDED: "Added", REMOVED: "Removed", CHANGED: "Changed" } as
    Record<string, string>,
  row: "Row",
  values: "Values",
  was: "before:",
};
