// Things are removed in two steps: a person sees what goes before it goes.
import { useSignal } from "@preact/signals";
import type { DeletionPreview } from "./schema.gen";
import { call, type Query } from "./api";
import { Came, Do, useAct } from "./kit";
import { stays } from "./route";
import { count, numbered, Scraped } from "./show";
import { texts } from "./texts";

/** Removes what stands at a path of the API, after its preview. */
export function Removal(props: { path: string; query?: Query; text: string; of?: string;
  done: () => void; }) {
  const { path, query } = props;
  const shown = useSignal<DeletionPreview | undefined>(undefined);
  const act = useAct();
  const look = () => act.run("look", async () => {
    shown.value = await call<DeletionPreview>("POST", `${path}/preview-delete`, { query });
  });
  const remove = async (token: string) => {
    const here = stays();
    const gone = await act.run(token, (key) =>
      call("DELETE", path, { query: { ...query, token }, key }));
    if (gone && here()) {
      props.done();
    } else {
      shown.value = undefined; // its token may be used up: it is looked at again
    }
  };
  const now = shown.value;
  return <div class="removal">
    {!now && <Do act={act} text={props.text} of={props.of} kind="second"
      go={() => void look()} />}
    {now && <div class="card" role="group" aria-label={props.text}>
      <p><strong>{props.text}: <Scraped value={now.previewSummary.entityName} /></strong></p>
      <ul>{Object.entries(now.previewSummary.cascadeCounts).filter(([, n]) => Number(n) > 0)
        .map(([kind, n]) => <li key={kind}>{texts.things(count(Number(n)), kind)}</li>)}</ul>
      {now.previewSummary.warnings.map((warning, i) => <p class="note" key={i}>
        <Scraped value={numbered(warning)} most={500} /></p>)}
      <p class="actions">
        <Do act={act} text={texts.removeNow} kind="danger" go={() => void remove(now.token)} />
        <Do act={act} text={texts.keepIt} go={() => { shown.value = undefined; }} />
      </p>
    </div>}
    <Came of={act} />
  </div>;
}
