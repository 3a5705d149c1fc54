// Pages of what a customer has: money, notices, keys, webhooks and preferences.
import { Keys } from "./keys";
import { Beside } from "./kit";
import { Notices } from "./notices";
import { Plan } from "./plan";
import { Preferences } from "./preferences";
import { texts } from "./texts.account";
import { Prices, Statements, Wallet } from "./wallet";
import { OneWebhook, Webhooks } from "./webhooks";

const money: [string, string][] = [["/wallet", texts.wallet], ["/statements", texts.statements],
  ["/prices", texts.prices], ["/plan", texts.plan]];
const settings: [string, string][] = [["/notices", texts.notices], ["/keys", texts.keys],
  ["/webhooks", texts.webhooks], ["/preferences", texts.preferences]];

/** The page of a place; undefined: there is none. */
export function page(parts: string[]) {
  const [name, id] = parts;
  if (name === "webhooks" && id && parts.length === 2) {
    return <><Beside name={texts.besideSettings} places={settings} />
      <OneWebhook id={id} key={id} /></>;
  }
  const shown = parts.length > 1 ? undefined : name === "wallet" ? <Wallet />
    : name === "statements" ? <Statements /> : name === "prices" ? <Prices />
    : name === "plan" ? <Plan /> : name === "notices" ? <Notices /> : name === "keys" ? <Keys />
    : name === "webhooks" ? <Webhooks /> : name === "preferences" ? <Preferences /> : undefined;
  const ofMoney = money.some(([path]) => path === `/${name}`);
  return shown && <><Beside name={ofMoney ? texts.besideMoney : texts.besideSettings}
    places={ofMoney ? money : settings} />{shown}</>;
}
