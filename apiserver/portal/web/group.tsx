// The group that stores the rows of what is saved: one that there is, or a new one.
import type { Group } from "./schema.gen";
import { call, Once } from "./api";
import { resynced, useLoaded } from "./load";
import { choices } from "./show";
import { texts } from "./texts";

/** Stands for a group that is to be made. No id is like it. */
const fresh = "new";

const last = "shoal-group"; // that this tab has used

const made = new Once();

const groups = (signal?: AbortSignal) =>
  call<Group[]>("GET", "/api/scraper/group/list", { signal });

async function make(name: string): Promise<string> {
  const group = await made.send(name, (key) => call<Group>("PUT", "/api/scraper/group",
    { key, body: { name } }));
  made.renew();
  resynced.value++;
  return group.id;
}

/** The group of those that there are which is used unless another one is chosen. */
const usual = (all: Group[]) => all.find((g) => g.id === sessionStorage.getItem(last)) ?? all[0];

/** The group that is used unless another one is chosen. It is made where there is none. */
export async function groupFor(): Promise<string> {
  return usual(await groups())?.id ?? await make(texts.firstGroup);
}

/** A group as it is chosen; undefined: the usual one. */
export interface Chosen {
  group?: string;
  newGroup?: string; // the name of one that is to be made
}

/** The group that is chosen, which is made where it is new. */
export async function groupOf({ group, newGroup }: Chosen): Promise<string> {
  const id = group === fresh ? await make(newGroup ?? "") : group ?? await groupFor();
  sessionStorage.setItem(last, id);
  return id;
}

/** Where a person chooses. A service without groups makes the first one by itself. */
export function ChooseGroup(props: { of: Chosen; busy: boolean; choose: (next: Chosen) => void }) {
  const { of, busy, choose } = props;
  const all = useLoaded(groups, [resynced.value]).value ?? [];
  if (all.length === 0) {
    return null;
  }
  return <>
    <div><label for="in-group">{texts.group}</label>
      <select id="in-group" value={of.group ?? usual(all)!.id} disabled={busy}
        onChange={(e) => choose({ newGroup: of.newGroup, group: e.currentTarget.value })}>
        {choices(all).map(([id, name]) => <option key={id} value={id}>{name}</option>)}
        <option value={fresh}>{texts.newGroup}</option>
      </select></div>
    {of.group === fresh && <div><label for="new-group">{texts.newGroupName}</label>
      <input id="new-group" value={of.newGroup ?? ""} maxLength={200} readOnly={busy}
        autocomplete="off"
        onInput={(e) => choose({ group: of.group, newGroup: e.currentTarget.value })} /></div>}
  </>;
}
