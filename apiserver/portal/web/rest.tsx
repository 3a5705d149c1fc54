// Pages of what is collected: groups, scrapers, their starts, sites, uploads and schemas.
import { Calendar } from "./calendar";
import { Group, GroupList } from "./groups";
import { Beside } from "./kit";
import { OneSchema, Schemas } from "./schemas";
import { OneScraper, Scrapers } from "./scrapers";
import { Site, Sites } from "./sites";
import { texts } from "./texts.rest";
import { Uploads } from "./uploads";

/** The page of a place; undefined: there is none. */
export function page(parts: string[]) {
  const [name, id] = parts;
  const one = parts.length === 1 ? [] : parts.length === 2 && id ? [id] : undefined;
  const shown = !one ? undefined : name === "groups" ? one.length ? <Group id={id!} key={id} />
    : <GroupList /> : name === "scrapers" ? one.length ? <OneScraper id={id!} key={id} />
    : <Scrapers /> : name === "calendar" && !one.length ? <Calendar />
    : name === "sites" ? one.length ? <Site scraper={id!} key={id} /> : <Sites />
    : name === "uploads" && !one.length ? <Uploads />
    : name === "schemas" ? one.length ? <OneSchema id={id!} key={id} /> : <Schemas />
    : undefined;
  return shown && <><Beside name={texts.beside} places={[["/groups", texts.groups],
    ["/scrapers", texts.scrapers], ["/calendar", texts.calendar], ["/sites", texts.sites],
    ["/uploads", texts.uploads], ["/schemas", texts.schemas]]} />{shown}</>;
}
