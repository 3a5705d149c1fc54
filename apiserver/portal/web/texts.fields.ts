// What the page of a run's fields says.
import { texts as first } from "./texts";

export const texts = {
  ...first,
  fieldsOf: (n: string, rows: string) => `${n} fields in ${rows} rows.`,
  fieldsNone: "The run has no rows, and so no fields.",
  fieldsMore: "There are more fields than are shown here.",
  filled: "Filled",
  types: "Kinds",
  typesOf: { text: "text", numericText: "numbers as text", number: "numbers",
    boolean: "yes or no", object: "objects", array: "lists" } as Record<string, string>,
  distinct: "Different values",
  least: "Least",
  mean: "Mean",
  greatest: "Greatest",
  overRuns: "Over runs",
  measure: "Measure",
  measures: { fillRate: "Filled, in percent", mean: "Mean of its numbers",
    distinct: "Different values" } as Record<string, string>,
  overRunsFew: "A line needs two runs that have ended, with this field in their rows.",
  overRunsGone: (n: string) => `Runs whose rows are deleted and not drawn: ${n}.`,
  asTable: "As a table",
};
