"""Reads the sitemaps and feeds of a folder by Python's own XML parser, for TestRealSitemaps.

One JSON object a line: the file, and either what it names (links, each with its first image, and
other sitemaps) or what was wrong with it.
"""

import gzip
import json
import pathlib
import sys
import xml.etree.ElementTree as ET


def local(element):
    return element.tag.rpartition("}")[2]


def space(element):
    return element.tag.rpartition("}")[0]


def children(element, name, own=True):
    for child in element:
        if local(child) == name and (space(child) == space(element)) == own:
            yield child


def text(element):
    return "".join(element.itertext()).strip()


def first(element, name, own=True):
    for child in children(element, name, own):
        if text(child):
            return text(child)
    return ""


def of_urlset(root):
    for url in children(root, "url"):
        image = ""
        for pictured in children(url, "image", own=False):
            image = image or first(pictured, "loc")
        if first(url, "loc"):
            yield first(url, "loc"), image
        for other in children(url, "link", own=False):
            if other.get("rel") == "alternate" and other.get("href"):
                yield other.get("href"), ""


def of_rss(root):
    for item in (e for e in root.iter() if local(e) == "item"):
        link = first(item, "link")
        guid = next(children(item, "guid"), None)
        instead = list(of_entry(child for child in item if local(child) == "link"))
        if guid is not None and guid.get("isPermaLink") != "false":
            instead.insert(0, text(guid))
        if not link and instead and instead[-1].startswith("http"):
            link = instead[-1]
        if link:
            yield link, None


def of_atom(root):
    for entry in children(root, "entry"):
        for link in of_entry(children(entry, "link")):
            yield link, None
            break


def of_entry(links):
    for link in links:
        if link.get("rel", "alternate") == "alternate" and link.get("href"):
            yield link.get("href")


def read(data):
    if data[:2] == b"\x1f\x8b":
        data = gzip.decompress(data)
    if not data.lstrip(b"\xef\xbb\xbf \t\r\n\xff\xfe").startswith((b"<", b"\0<")):
        lines = (line.strip() for line in data.decode("utf-8-sig", "replace").splitlines())
        return {"form": "text", "links": [[l, None] for l in lines if l.lower().startswith("http")]}
    root = ET.fromstring(data.lstrip() if data[:1].isspace() else data)
    form = local(root)
    if form == "sitemapindex":
        return {"form": form, "sitemaps": [first(s, "loc") for s in children(root, "sitemap")]}
    readers = {"urlset": of_urlset, "rss": of_rss, "RDF": of_rss, "feed": of_atom}
    return {"form": form, "links": [list(link) for link in readers[form](root)]}


for path in sorted(pathlib.Path(sys.argv[1]).iterdir()):
    try:
        found = read(path.read_bytes())
    except Exception as wrong:  # whatever a file of the web brings about
        found = {"error": repr(wrong)}
    print(json.dumps({"file": path.name, **found}))
