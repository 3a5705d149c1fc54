// The texts of notices, by event. For an event that is not known here, the portal shows the text
// that the service wrote.
import type { Notification, NotifiedChanges, NotifiedRun, NotifiedStart } from "./schema.gen";
import { count, money, numbered } from "./show";
import { so } from "./texts";

const some = (n: number, thing: string) => so(count(n), thing);

const because = (why: string | undefined) =>
  why ? `: ${numbered(why)}${/[.!?…]$/.test(why) ? "" : "."}` : ".";

/** The titles, with the name of the notice's subject. */
const titles: Record<string, (name: string) => string> = {
  SCRAPER_RUN_FAILED: (name) => `The run of "${name}" failed`,
  SCRAPER_RUN_COMPLETED: (name) => `The run of "${name}" is complete`,
  SCRAPER_RUN_STOPPED_BALANCE: (name) => `The run of "${name}" stopped: the balance was used up`,
  WALLET_LOW_BALANCE: () => "The balance of your wallet is low",
  TOPUP_APPLIED: () => "Your wallet was topped up",
  TOPUP_FAILED: () => "The payment of a top-up failed",
  QUOTA_NEAR_LIMIT: (name) => `You are near your plan's limit on ${limits[name] ?? name}`,
  MERGE_COMPLETED: (name) => `The merge into "${name}" is complete`,
  MATCH_COMPLETED: (name) => `The match into "${name}" is complete`,
  MATCH_FAILED: (name) => `The match into "${name}" failed`,
  GROUP_SHARED: (name) => `The group "${name}" is shared with you`,
  RUN_ANOMALY: (name) => `The run of "${name}" is held back`,
  RUN_CHANGED: (name) => `Rows of "${name}" have changed`,
  API_KEY_CREATED: (name) => `The API key "${name}" was created`,
  WEBHOOK_DISABLED: () => "A webhook was switched off",
  SCHEDULED_START_REFUSED: (name) => `A scheduled start of "${name}" was refused`,
};

/** What the limits of plans count. */
const limits: Record<string, string> = { MAX_SCRAPERS: "scrapers", MAX_GROUPS: "groups",
  DATA_SHARING_LIMITS: "shares", GROUP_CUSTOM_CATEGORIES_LIMIT: "categories" };

/** Why a start was refused, and what helps. */
const refusals: Record<string, [why: string, helps: string]> = {
  NOT_AFFORDABLE: ["the wallet cannot pay for a page", "Top it up."],
  CUSTOMER_BLOCKED: ["your account is blocked", "Ask the operator."],
  FEATURE_NOT_IN_PLAN: ["your plan does not include scheduled starts", "Change the plan."],
  CONFIG_INVALID: ["its settings are not valid", "Check its fields."],
  SCHEMA_GONE: ["its schema was deleted", "Choose another one."],
};

function textOfRun(event: string, run: NotifiedRun): string {
  const fetched = run.pages > 0 || run.errorLinks > 0; // a file has no pages
  const failed = `${some(run.errorLinks, "link")} failed`;
  const cost = `It cost ${money(run.chargedMicros)}.`;
  switch (event) {
    case "RUN_ANOMALY":
      return `It is unlike earlier runs${because(run.errorMessage)} `
        + "Release it to make it count.";
    case "MERGE_COMPLETED":
    case "MATCH_COMPLETED":
      return `It made ${some(run.rows, "row")}.`;
    case "MATCH_FAILED":
      return `Nothing was stored${because(run.errorMessage)}`;
    case "SCRAPER_RUN_FAILED":
      return fetched
        ? `It read ${some(run.pages, "page")}, and ${failed}${because(run.errorMessage)} ${cost}`
        : `Nothing was stored${because(run.errorMessage)}`;
  }
  const remark = run.errorMessage ? ` Note${because(run.errorMessage)}` : "";
  return fetched || event === "SCRAPER_RUN_STOPPED_BALANCE"
    ? `It read ${some(run.pages, "page")} and made ${some(run.rows, "row")}; ${failed}. ${cost}${remark}`
    : `It made ${some(run.rows, "row")}.`;
}

function textOfChanges(of: NotifiedChanges): string {
  return of.fromJobId
    ? [`Since the previous run, ${some(of.added, "row")} ${of.added === 1 ? "was" : "were"} added, `
      + `${count(of.removed)} removed and ${count(of.changed)} changed.`,
      ...of.examples ?? []].join("\n")
    : `What changed since the previous run is not known${because(of.errorMessage)}`;
}

function textOfStart(of: NotifiedStart): string {
  const [why, helps] = refusals[of.reason] ?? [`it could not be launched (${of.reason})`, ""];
  const what = of.scraperId ? "It" : `${some(of.skipped, "scraper")} of the group`;
  return `${what} did not start: ${why}. ${helps}`.trim();
}

/** The words of a notice. */
export function wordsOf(n: Notification): { title: string; text: string } {
  const { run, key, topUp, group, webhook, start, quota, changes, balanceMicros } = n.facts;
  const name = run?.scraperName ?? changes?.scraperName ?? key?.name ?? group?.name
    ?? start?.name ?? quota?.limit ?? "";
  let text = n.text;
  if (run) {
    text = textOfRun(n.event, run);
  } else if (changes) {
    text = textOfChanges(changes);
  } else if (start) {
    text = textOfStart(start);
  } else if (quota) {
    text = `You have ${count(quota.used)}, and your plan ${quota.plan} allows ${count(quota.most)}.`;
  } else if (topUp) {
    const paid = money(topUp.amountMicros);
    text = n.event === "TOPUP_APPLIED" ? `${paid} was paid in.`
      : `${paid} was not paid in. No money has moved.`;
  } else if (balanceMicros != null) {
    text = `It is ${money(balanceMicros)}, below your threshold. Runs stop when it is used up.`;
  } else if (webhook) {
    text = `Nothing is sent to ${webhook.url} any more${because(webhook.reason)}`;
  } else if (key) {
    text = "If it was not you, revoke it at once.";
  } else if (group) {
    text = "You can read its rows, categories and runs until its owner ends the share.";
  }
  const title = n.event === "MORE_NOTICES" ? some(n.count, "more notice")
    : n.event === "RUN_CHANGED" && !changes?.fromJobId
      ? `The run of "${name}" could not be compared` : titles[n.event]?.(name) ?? n.title;
  return { title, text };
}
