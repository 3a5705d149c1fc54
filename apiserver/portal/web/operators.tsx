// Pages of operators: the cluster, whom it serves, and what they have set.
import type { ComponentChildren } from "preact";
import type { Identity } from "./schema.gen";
import { call } from "./api";
import { Audit } from "./audit";
import { Backups, Cluster, Nodes, Work } from "./cluster";
import { OneCustomer, People } from "./people";
import { PlanSet } from "./planset";
import { PriceSet } from "./priceset";
import { Beside } from "./kit";
import { Shown, useLoaded } from "./load";
import { ServiceSet } from "./serviceset";
import { texts } from "./texts.operators";

/** Shows what administrators may see. Whether a person is one is the API's to say. */
function ForAdmins(props: { children: ComponentChildren }) {
  const read = useLoaded((signal) => call<Identity>("GET", "/api/key/whoami", { signal }), []);
  return <Shown of={read} title={texts.operators}>{(who) => who.admin ? <>{props.children}</>
    : <><h1 tabIndex={-1}>{texts.operators}</h1><p class="note">{texts.adminsOnly}</p></>}</Shown>;
}

/** The page of a place; undefined: there is none. */
export function page(parts: string[]) {
  const what = parts.length > 2 ? "none" : parts[1] ?? "";
  const shown = what === "" ? <Cluster /> : what === "nodes" ? <Nodes />
    : what === "work" ? <Work /> : what === "backups" ? <Backups />
    : what === "customers" ? <People /> : what === "customer" ? <OneCustomer />
    : what === "prices" ? <PriceSet /> : what === "plans" ? <PlanSet />
    : what === "settings" ? <ServiceSet /> : what === "audit" ? <Audit /> : undefined;
  return shown && <ForAdmins><Beside name={texts.operators} places={[["/operators", texts.cluster],
    ["/operators/nodes", texts.nodes], ["/operators/work", texts.work],
    ["/operators/backups", texts.backups], ["/operators/customers", texts.customers],
    ["/operators/prices", texts.prices], ["/operators/plans", texts.planSet],
    ["/operators/settings", texts.settings], ["/operators/audit", texts.audit]]} />{shown}</ForAdmins>;
}
