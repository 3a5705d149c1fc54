//! What both Rust jobs share: the fields of a row, read with lol_html, and what the bench tells a job.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::rc::Rc;
use std::sync::Mutex;

use lol_html::html_content::{Element, TextChunk};
use lol_html::{ElementContentHandlers, HtmlRewriter, OutputSink, Selector, Settings};
use serde::Serialize;

pub type Error = Box<dyn std::error::Error + Send + Sync>;

/// What the bench tells a job: JOB ADDRESSES ROWS CONCURRENCY [absent] [early]
pub struct Job {
    pub addresses: Vec<String>,
    pub concurrency: usize,
    pub fields: Fields,
    rows: Mutex<BufWriter<File>>,
}

impl Job {
    pub fn from_args() -> Result<Job, Error> {
        let args: Vec<String> = std::env::args().skip(1).collect();
        let [addresses, rows, concurrency, options @ ..] = args.as_slice() else {
            return Err("usage: JOB ADDRESSES ROWS CONCURRENCY [absent] [early]".into());
        };
        let has = |name: &str| options.iter().any(|option| option == name);
        Ok(Job {
            addresses: std::fs::read_to_string(addresses)?.lines().map(str::to_owned).collect(),
            concurrency: concurrency.parse()?,
            fields: Fields::new(has("absent"), has("early")),
            rows: Mutex::new(BufWriter::new(File::create(rows)?)),
        })
    }

    pub fn write(&self, row: &Row) -> Result<(), Error> {
        let mut line = serde_json::to_vec(row)?;
        line.push(b'\n');
        Ok(self.rows.lock().unwrap().write_all(&line)?)
    }

    pub fn end(&self) -> Result<(), Error> {
        Ok(self.rows.lock().unwrap().flush()?)
    }
}

#[derive(Default, Serialize)]
pub struct Row {
    title: Option<String>,
    price: Option<String>,
    sku: Option<String>,
    stock: Option<String>,
    canonical: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    absent: Option<String>,
}

impl Row {
    fn text(&mut self, field: usize) -> &mut Option<String> {
        match field {
            0 => &mut self.title,
            1 => &mut self.price,
            2 => &mut self.sku,
            3 => &mut self.stock,
            _ => &mut self.absent,
        }
    }
}

const TEXTS: [&str; 5] = ["h1.title", "main .price", "div.sku", "div.stock", "div.absent"];

/// The selectors, parsed once.
pub struct Fields {
    texts: Vec<Selector>,
    canonical: Selector,
    early: bool,
}

impl Fields {
    fn new(absent: bool, early: bool) -> Fields {
        let texts = &TEXTS[..if absent { 5 } else { 4 }];
        Fields {
            texts: texts.iter().map(|text| text.parse().unwrap()).collect(),
            canonical: "link[rel=canonical]".parse().unwrap(),
            early,
        }
    }

    /// A reader of one page.
    pub fn reader(&self) -> Reader<'_> {
        let found = Rc::new(RefCell::new(Found { row: Row::default(), open: [false; 5], missing: self.texts.len() + 1 }));
        let mut settings = Settings::new();
        for (field, selector) in self.texts.iter().enumerate() {
            let (at, text) = (found.clone(), found.clone());
            settings = settings.append_element_content_handler((
                Cow::Borrowed(selector),
                ElementContentHandlers::default()
                    .element(move |_: &mut Element| {
                        at.borrow_mut().begin(field);
                        Ok(())
                    })
                    .text(move |chunk: &mut TextChunk| {
                        text.borrow_mut().add(field, chunk);
                        Ok(())
                    }),
            ));
        }
        let link = found.clone();
        settings = settings.append_element_content_handler((
            Cow::Borrowed(&self.canonical),
            ElementContentHandlers::default().element(move |element: &mut Element| {
                link.borrow_mut().canonical(element);
                Ok(())
            }),
        ));
        Reader { rewriter: HtmlRewriter::new(settings, Nowhere), found, early: self.early }
    }
}

/// Reader is given a page piece by piece.
pub struct Reader<'f> {
    rewriter: HtmlRewriter<'f, Nowhere>,
    found: Rc<RefCell<Found>>,
    early: bool,
}

impl Reader<'_> {
    /// Reads the next piece. A reader that stops early does so between two pieces of at most 2 KB.
    pub fn read(&mut self, piece: &[u8]) -> Result<(), Error> {
        if !self.early {
            return Ok(self.rewriter.write(piece)?);
        }
        for part in piece.chunks(2048) {
            if self.found.borrow().missing == 0 {
                break;
            }
            self.rewriter.write(part)?;
        }
        Ok(())
    }

    pub fn end(self) -> Result<Row, Error> {
        if !self.early || self.found.borrow().missing > 0 {
            self.rewriter.end()?;
        }
        let mut row = std::mem::take(&mut self.found.borrow_mut().row);
        for field in 0..TEXTS.len() {
            if let Some(text) = row.text(field) {
                let trimmed = text.trim();
                if trimmed.len() < text.len() {
                    *text = trimmed.to_owned();
                }
            }
        }
        Ok(row)
    }
}

/// The row so far. Of the elements that a selector matches, the first one counts.
struct Found {
    row: Row,
    open: [bool; 5],
    missing: usize,
}

impl Found {
    fn begin(&mut self, field: usize) {
        let text = self.row.text(field);
        self.open[field] = text.is_none();
        text.get_or_insert_default();
    }

    fn add(&mut self, field: usize, chunk: &TextChunk) {
        if !self.open[field] {
            return;
        }
        self.row.text(field).get_or_insert_default().push_str(chunk.as_str());
        if chunk.last_in_text_node() {
            self.missing -= 1;
            self.open[field] = false; // the page's fields have one text each
        }
    }

    fn canonical(&mut self, element: &Element) {
        if self.row.canonical.is_none() {
            self.row.canonical = element.get_attribute("href");
            self.missing -= 1;
        }
    }
}

/// Nowhere is where what lol_html would have rewritten goes.
struct Nowhere;

impl OutputSink for Nowhere {
    fn handle_chunk(&mut self, _: &[u8]) {}
}
