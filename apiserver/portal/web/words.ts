// Refusals as people read them: sentences without the names that programs use.
import type { ProblemItem } from "./schema.gen";
import { money, numbered } from "./show";
import { texts } from "./texts";

/** The words of a member of the API, such as "group id" of groupId. */
function wordsOf(member: string): string {
  return texts.members[member] ?? member.replace(/^_+/, "").replace(/[_.-]+/g, " ")
    .replace(/([a-z0-9])([A-Z])/g, (_, a: string, b: string) => `${a} ${b.toLowerCase()}`);
}

/** The words of a field of a request: its last member, and of which one of a list it is. */
function fieldOf(field: string): string {
  const last = field.replace(/\[\d+\]/g, "").split(".").at(-1) || field;
  const at = /\[(\d+)\]/.exec(field);
  return at ? texts.memberOf(wordsOf(last), String(Number(at[1]) + 1)) : wordsOf(last);
}

/** What is said, as a sentence: it begins with a capital letter, and ends with a full stop. What
 * stands in quotes or is a place stays as it is. */
export function sentence(said: string): string {
  const plain = said.trim().split(/("[^"]*"|\S*\/\S*)/).map((part, i) => i % 2 === 1 ? part
    : numbered(part.replace(/\b[a-z]+(?:[A-Z][a-z]*)+\b/g, (member) => wordsOf(member)))).join("");
  const begun = /^[a-z]/.test(plain) ? plain[0]!.toUpperCase() + plain.slice(1) : plain;
  return begun === "" || /[.!?…]["')]?$/.test(begun) ? begun : begun + ".";
}

// How the API says something of a field that stands before it.
const verb = /^(must|is|are|has|have|may|can|cannot|needs|takes|names|does|do|exceeds|was) /;

/** A fault of a request, in the words of the page: names are labels of its fields. */
export function told(item: ProblemItem, names: Record<string, string> = {}): string {
  const field = item.field ?? "";
  const label = names[field];
  const detail = field !== "" && item.message.startsWith(`${field}: `)
    ? item.message.slice(field.length + 2) : item.message;
  const said = field !== "" && verb.test(detail) ? `${label ?? fieldOf(field)} ${detail}`
    : label ? `${label}: ${detail}` : detail;
  return sentence(/Micros$/.test(field)
    ? said.replace(/-?\d+/g, (n) => money(Number(n))) : said);
}
