// The fields of a row, read with htmlparser2 as its own documentation does: callbacks, and no tree.

import { Parser } from "htmlparser2";

const hasClass = (attributes, name) => attributes.class?.split(/\s+/).includes(name) ?? false;

class Reader {
  constructor(absent) {
    this.row = { title: null, price: null, sku: null, stock: null, canonical: null };
    if (absent) this.row.absent = null;
    this.missing = Object.keys(this.row).length;
    this.depth = 0;
    this.mains = 0; // how many <main> are open
    this.field = null; // whose text is being read, since the tag at depth from
    this.from = 0;
    this.text = "";
  }

  fieldAt(tag, attributes) {
    switch (tag) {
      case "h1":
        if (hasClass(attributes, "title")) return "title";
        break;
      case "div":
        if (hasClass(attributes, "sku")) return "sku";
        if (hasClass(attributes, "stock")) return "stock";
        if ("absent" in this.row && hasClass(attributes, "absent")) return "absent";
        break;
    }
    return this.mains > 0 && hasClass(attributes, "price") ? "price" : null;
  }

  onopentag(tag, attributes) {
    this.depth++;
    if (tag === "main") this.mains++;
    if (tag === "link" && attributes.rel === "canonical" && this.row.canonical === null) this.take("canonical", attributes.href);
    if (this.field !== null) return;
    const field = this.fieldAt(tag, attributes);
    if (field === null || this.row[field] !== null) return;
    this.field = field;
    this.from = this.depth;
    this.text = "";
  }

  ontext(text) {
    if (this.field !== null) this.text += text;
  }

  onclosetag(tag) {
    if (this.field !== null && this.depth === this.from) {
      this.take(this.field, this.text.trim());
      this.field = null;
    }
    if (tag === "main") this.mains--;
    this.depth--;
  }

  take(field, value) {
    this.row[field] = value;
    this.missing--;
    if (this.missing === 0) this.ondone?.();
  }
}

// rowOf reads all of a page; with early, no further than to the last of its fields.
export function rowOf(html, absent, early) {
  const reader = new Reader(absent);
  const parser = new Parser(reader, { decodeEntities: true });
  if (early) reader.ondone = () => parser.pause();
  parser.write(html);
  if (!early || reader.missing > 0) parser.end();
  return reader.row;
}
