// What a person has picked on a page so far. It lives as long as the browser's tab.
import type { FieldInput, PostProcessRule } from "./schema.gen";

export type Kind = "SINGLE_PRODUCT" | "MULTIPLE_PRODUCTS";

/** A rule as it is entered. It belongs to its field, whatever the names of fields are. */
export interface Rule {
  kind: PostProcessRule["kind"];
  params: Record<string, string>;
}

/** A field that was picked. */
export type Picked = FieldInput & { rule?: Rule };

export interface Recipe {
  url: string;
  type: Kind;
  fields: Picked[];
  follow: boolean;
}

const kept = "shoal-recipe";

export function readRecipe(url: string): Recipe | undefined {
  try {
    const was = JSON.parse(sessionStorage.getItem(kept) ?? "null") as Recipe | null;
    return was?.url === url ? was : undefined;
  } catch {
    return undefined;
  }
}

export const keepRecipe = (recipe: Recipe) =>
  sessionStorage.setItem(kept, JSON.stringify(recipe));

export const newRecipe = (url: string, follow: boolean): Recipe =>
  ({ url, type: "MULTIPLE_PRODUCTS", fields: [], follow });

const suffixes = { REGEX_CLEAN: "clean", CURRENCY_CONVERT: "converted", ENUM_MAP: "mapped" };

/** Between a value and what stands for it. */
const arrow = "=>";

/** What stands for values, one a line; undefined: a line is none, or there is no line. */
export function readMapping(text: string): Record<string, string> | undefined {
  const pairs = text.split(/[\r\n]+/).filter((line) => line.trim()).map((line) => {
    const at = line.indexOf(arrow);
    return at < 0 ? undefined : [line.slice(0, at).trim(), line.slice(at + arrow.length).trim()];
  });
  return pairs.length > 0 && !pairs.includes(undefined)
    ? Object.fromEntries(pairs as string[][]) as Record<string, string> : undefined;
}

/** Lines that map the values of a field to themselves, so that they can be changed. */
export function mappingOf(values: string[]): string {
  const plain = [...new Set(values)].filter((value) => value && value === value.trim() &&
    !/[\r\n]/.test(value) && !value.includes(arrow));
  return (plain.length > 0 ? plain : ["A"]).map((value) => `${value} ${arrow} ${value}`).join("\n");
}

/** Whether a rule can be sent as it was entered. */
export const isWhole = (rule: Rule | undefined) =>
  rule?.kind !== "ENUM_MAP" || readMapping(rule.params.mapping!) !== undefined;

/** The fields as the API takes them. */
export const itemsOf = (fields: Picked[]): FieldInput[] =>
  fields.map(({ rule: _, ...field }) => field);

/** The rules as the API takes them. One that is not whole is left out. */
export const rulesOf = (fields: Picked[]): PostProcessRule[] =>
  fields.flatMap(({ name, rule }) => rule && isWhole(rule) ? [{ kind: rule.kind,
    sourceField: name, outputField: `${name}_${suffixes[rule.kind]}`, params: paramsOf(rule) }]
    : []);

function paramsOf({ kind, params }: Rule): Record<string, unknown> {
  return kind !== "ENUM_MAP" ? params : { mapping: readMapping(params.mapping!),
    ...params.default && { default: params.default } };
}
