//! The bench's job for the spider crate: its client and its pages, and lol_html, which spider itself reads links with, for
//! the fields.
//!
//! spider crawls sites by their links; of a list of addresses known beforehand its documented way is `Page::new_page` with
//! the client that `Website` has configured, which spares it the crawl's own work: links, visited addresses, budgets. Of its
//! default features, those of a crawl (TLS, disk, cookies, balance) are left out. The allocator is mimalloc, as its README
//! advises for crawling with parsing.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fields::{Error, Job};
use spider::client::Client;
use spider::page::Page;
use spider::website::Website;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

#[tokio::main]
async fn main() -> Result<(), Error> {
    let job = Arc::new(Job::from_args()?);
    let mut website = Website::new(job.addresses.first().ok_or("no addresses")?);
    website.with_respect_robots_txt(false).with_user_agent(Some("spider"));
    website.configure_setup_norobots();
    let client = Arc::new(website.configure_http_client());
    let next = Arc::new(AtomicUsize::new(0));
    let workers: Vec<_> =
        (0..job.concurrency).map(|_| tokio::spawn(work(job.clone(), client.clone(), next.clone()))).collect();
    for worker in workers {
        worker.await??;
    }
    job.end()
}

async fn work(job: Arc<Job>, client: Arc<Client>, next: Arc<AtomicUsize>) -> Result<(), Error> {
    while let Some(address) = job.addresses.get(next.fetch_add(1, Ordering::Relaxed)) {
        let page = Page::new_page(address, &client).await;
        let html = page.get_html_bytes_u8();
        if !page.status_code.is_success() || html.is_empty() {
            return Err(format!("{address}: {}", page.status_code).into());
        }
        let mut reader = job.fields.reader();
        reader.read(html)?;
        job.write(&reader.end()?)?;
    }
    Ok(())
}
