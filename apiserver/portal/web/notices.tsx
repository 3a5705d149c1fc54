// Notices: what the service has told the customer.
import type { Notification } from "./schema.gen";
import { call } from "./api";
import { Came, Do, Pager, useAct, usePage } from "./kit";
import { Shown } from "./load";
import { address, go, place } from "./route";
import { count, Scraped, when } from "./show";
import { unread } from "./store";
import { texts } from "./texts.account";
import { wordsOf } from "./texts.notices";

/** Where a notice leads; undefined: nowhere. */
function placeOf(n: Notification): string | undefined {
  const before = n.facts.changes?.fromJobId;
  return n.jobId && n.scraperId ? `/runs/${n.scraperId}/${n.jobId}`
    + (before ? `/changes?with=${before}` : "")
    : n.webhookId ? `/webhooks/${n.webhookId}`
    : n.groupId ? `/${n.event === "GROUP_SHARED" ? "rows" : "groups"}/${n.groupId}`
    : n.transactionId ? "/wallet" : n.keyId ? "/keys" : undefined;
}

/** All notices, the newest first. */
export function Notices() {
  const only = place.value.query.get("unread") === "yes";
  const list = usePage<Notification>("/api/notifications", { unread: only || undefined });
  const act = useAct();
  const readAll = () => act.run("all", async () => {
    unread.value = (await call<{ unread: number }>("POST", "/api/notifications/read")).unread;
    list.again();
    return texts.noticesRead;
  });
  const mark = (n: Notification) => act.run([n.id, !n.read], async () => {
    unread.value = (await call<{ unread: number }>("PUT", `/api/notifications/${n.id}`,
      { body: { read: !n.read } })).unread;
    list.again();
  });
  return <>
    <h1 tabIndex={-1}>{texts.notices}</h1>
    <p class="actions">
      <Do act={act} text={texts.noticesReadAll} go={() => void readAll()} />
      <label class="check"><input type="checkbox" checked={only} onChange={(e) => go(
        address("/notices", e.currentTarget.checked ? { unread: "yes" } : {}), true)} />
      {texts.noticesUnread}</label></p>
    <Came of={act} />
    <Shown of={list}>{(page) => page.content.length === 0 ? <p>{texts.noticesNone}</p> : <>
      <ul class="notices">{page.content.map((n) => {
        const to = placeOf(n);
        const { title, text } = wordsOf(n);
        return <li key={n.id} class={n.read ? "card" : "card unread"}>
          <h2><Scraped value={title} most={200} />{!n.read
            && <span class="unseen"> ({texts.noticeNew})</span>}</h2>
          <p><Scraped value={text} most={2_500} lines /></p>
          <p class="hint">{when(n.createdAt)}{n.count > 1 && ` · ${texts.times(count(n.count))}`}
          </p>
          <p class="actions">{to && <a class="button" href={address(to)}
            aria-label={`${texts.noticeSee}: ${title}`}>{texts.noticeSee}</a>}
          <Do act={act} text={n.read ? texts.noticeUnread : texts.noticeRead} of={title}
            kind="plain" go={() => void mark(n)} /></p>
        </li>;
      })}</ul>
      <Pager of={page} at={list.at} /></>}</Shown>
  </>;
}
