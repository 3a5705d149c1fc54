// Sites are the links that a scraper's runs read; sitemaps are what a site says of itself.
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Scraper, ScraperCursorPage, Site as Of, SiteLink, SitemapEntry } from "./schema.gen";
import { call } from "./api";
import { readAddresses } from "./draft";
import { useEntry } from "./entries";
import { Came, Cursor, Do, Entry, Form, Pager, Select, Table, useAct, usePage } from "./kit";
import { resynced, Shown, useLoaded } from "./load";
import { address, go, place } from "./route";
import { count, Fact, Scraped, visible, when } from "./show";
import { texts } from "./texts.rest";

/** Scrapers, of which each may have a site. */
export function Sites() {
  return <>
    <h1 tabIndex={-1}>{texts.sites}</h1>
    <p class="lead">{texts.sitesLead}</p>
    <Cursor<ScraperCursorPage["items"][number]> reasons={[resynced.value]}
      ask={(at, signal) => call("GET", "/api/scraper/list", { query: { ...at, limit: 50 }, signal })}>
      {(scrapers) => <Table caption={texts.sites} items={scrapers} none={texts.sitesNone}
        columns={[
          { name: texts.scraper, of: (s) => <a href={address(`/sites/${s.id}`)}>
            <Scraped value={s.name} most={80} /></a> },
          { name: texts.type, of: (s) => texts.types[s.type] ?? s.type },
          { name: texts.address, of: (s) => <Scraped value={s.sourceConfig.url ?? ""}
            most={80} /> },
          { name: texts.made, of: (s) => when(s.createdAt) }]} />}
    </Cursor>
  </>;
}

/** The site of a scraper, and its sitemaps. */
export function Site(props: { scraper: string }) {
  const id = encodeURIComponent(props.scraper);
  const read = useLoaded(async (signal) => {
    const [scraper, site] = await Promise.all([
      call<Scraper>("GET", `/api/scraper/${id}`, { signal }),
      call<Of | null>("GET", `/api/scraper/${id}/site`, { signal })]);
    return { scraper, site };
  }, [props.scraper, resynced.value]);
  return <Shown of={read} title={texts.site}>{({ scraper, site }) => <>
    <h1 tabIndex={-1}>{texts.site} <bdi>{visible(scraper.name, 200)}</bdi></h1>
    <p class="lead"><Scraped value={scraper.sourceConfig.url ?? ""} /></p>
    {site ? <Links site={site} changed={read.again} /> : <p>{texts.siteNone}</p>}
    <Give scraper={scraper} site={site} changed={read.again} />
    <Sitemaps scraper={scraper} />
  </>}</Shown>;
}

/** Has the address ask for something else, too. */
function ask(name: string, value: string): void {
  const query = new URLSearchParams(place.value.query);
  query.delete("page");
  query.delete("entries");
  query.set(name, value);
  go(address(place.value.path, Object.fromEntries(query)), true);
}

function Links(props: { site: Of; changed: () => void }) {
  const { site } = props;
  const q = place.value.query.get("q") ?? "";
  const state = place.value.query.get("state") ?? "";
  const typed = useEntry("q", q);
  const act = useAct();
  const list = usePage<SiteLink>(`/api/scraper/site/${site.id}/links`, { q: q || undefined,
    filters: state ? JSON.stringify({ state }) : undefined });
  const sure = useSignal(false);
  const remove = () => act.run("remove", async (key) => {
    await call("DELETE", `/api/scraper/site/${site.id}`, { key });
    props.changed();
    return texts.siteRemoved;
  });
  return <section>
    <h2>{texts.siteLinks}</h2>
    <dl class="facts">
      <Fact name={texts.siteName}><Scraped value={site.name} most={100} /></Fact>
      <Fact name={texts.links}>{count(site.linkCount)}</Fact>
      <Fact name={texts.changed}>{when(site.updatedAt)}</Fact>
    </dl>
    <form class="filter" role="search" noValidate
      onSubmit={(e) => { e.preventDefault(); ask("q", typed.value); }}>
      <Entry id="q" label={texts.search} value={typed} type="search" />
      <div><label for="state">{texts.state}</label>
        <select id="state" value={state} onChange={(e) => ask("state", e.currentTarget.value)}>
          <option value="">{texts.all}</option>
          {Object.entries(texts.linkStates).map(([value, text]) =>
            <option key={value} value={value}>{text}</option>)}</select></div>
      <button class="second">{texts.searchDo}</button>
    </form>
    <Shown of={list}>{(page) => <>
      <Table caption={texts.siteLinks} items={page.content} none={texts.linksNone} columns={[
        { name: texts.address, of: (l) => <Scraped value={l.url || l.curl} most={120} /> },
        { name: texts.title, of: (l) => <Scraped value={l.title} most={80} /> },
        { name: texts.state, of: (l) => texts.linkStates[l.state] ?? l.state }]} />
      <Pager of={page} at={list.at} /></>}</Shown>
    <p class="actions">{!sure.value
      ? <Do act={act} text={texts.siteRemove} go={() => { sure.value = true; }} />
      : <><Do act={act} text={texts.siteRemoveNow(count(site.linkCount))} kind="danger"
        go={() => void remove()} />
      <Do act={act} text={texts.cancel} go={() => { sure.value = false; }} /></>}</p>
    <Came of={act} />
  </section>;
}

function Give(props: { scraper: Scraper; site: Of | null; changed: () => void }) {
  const { scraper, site } = props;
  const text = useEntry("links", "");
  const name = useEntry("site-name", site?.name ?? scraper.name);
  const bad = useSignal("");
  const act = useAct();
  const give = () => {
    const { addresses, bad: line } = readAddresses(text.value);
    bad.value = line !== undefined ? texts.addressBad(visible(line, 100))
      : addresses.length === 0 ? texts.addressesNone : "";
    if (bad.value) {
      document.getElementById("links")?.focus();
      return;
    }
    void act.run([name.value, text.value], async (key) => {
      const made = await call<Of>("PUT", "/api/scraper/site", { key, type: "text/uri-list",
        query: { name: name.value, scraperRef: scraper.id, id: site?.id },
        body: addresses.join("\r\n") });
      text.value = "";
      props.changed();
      return texts.siteGiven(count(made.linkCount));
    });
  };
  return <section>
    <h2>{site ? texts.siteReplace : texts.siteGive}</h2>
    <Form act={act} send={give} button={texts.siteSend} label={texts.siteGive}
      names={{ name: texts.siteName, links: texts.links, scraperRef: texts.scraper }}>
      <Entry id="site-name" label={texts.siteName} value={name} most={200} />
      <Entry id="links" label={texts.links} value={text} lines={6} hint={texts.siteHint}
        problem={bad.value || undefined} />
    </Form>
  </section>;
}

function Sitemaps(props: { scraper: Scraper }) {
  const { scraper } = props;
  const path = `/api/scraper/${scraper.id}/sitemaps`;
  const q = place.value.query.get("entry") ?? "";
  const only = useEntry("only", place.value.query.get("only") ?? "NONE");
  const typed = useEntry("entry", q);
  const act = useAct();
  const soFar = useSignal<number | undefined>(undefined);
  const left = useRef(new AbortController()).current;
  useEffect(() => () => left.abort(), []);
  const list = usePage<SitemapEntry>(path, { q: q || undefined,
    restriction: place.value.query.get("only") || undefined }, "entries");
  const harvest = () => act.run("harvest", async (key) => {
    soFar.value = undefined;
    const n = await call<number>("POST", `${path}/harvest`, { key, signal: left.signal,
      soFar: (n) => { soFar.value = n as number; } });
    list.again();
    return texts.harvested(count(n));
  });
  const look = () => {
    ask("only", only.value);
    ask("entry", typed.value);
  };
  return <section>
    <h2>{texts.sitemaps}</h2>
    <p class="hint">{texts.sitemapsHint}</p>
    <p><Do act={act} text={texts.harvest} go={() => void harvest()} /></p>
    {act.busy && soFar.value !== undefined
      && <p role="status">{texts.harvestedSoFar(count(soFar.value))}</p>}
    <Came of={act} />
    <form class="filter" role="search" aria-label={texts.sitemaps} noValidate
      onSubmit={(e) => { e.preventDefault(); look(); }}>
      <Entry id="entry" label={texts.search} value={typed} type="search" />
      <Select id="only" label={texts.restriction} value={only}
        options={Object.entries(texts.restrictions)} />
      <button class="second">{texts.searchDo}</button>
    </form>
    <Shown of={list}>{(page) => <>
      <Table caption={texts.sitemaps} items={page.content} none={texts.entriesNone} columns={[
        { name: texts.address, of: (e) => <Scraped value={e.url} most={120} /> },
        { name: texts.title, of: (e) => <Scraped value={e.imageTitle ?? ""} most={80} /> },
        { name: texts.seen, of: (e) => when(e.lastSeen) }]} />
      <Pager of={page} at={list.at} name="entries" /></>}</Shown>
  </section>;
}
