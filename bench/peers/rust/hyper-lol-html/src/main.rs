//! The bench's job for the fastest that one writes oneself: hyper's connections without a pool, one kept to each host, and
//! lol_html, which reads a page's pieces as they come and keeps none of it.
//!
//! A thread and a runtime of its own for each core, with mimalloc: nothing is handed from one core to the other.

use std::collections::HashMap;
use std::sync::Arc;

use fields::{Error, Job};
use http_body_util::{BodyExt, Empty};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::{Request, StatusCode, header};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::LocalSet;

#[global_allocator]
static GLOBAL: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> Result<(), Error> {
    let job = Arc::new(Job::from_args()?);
    let under_way = Arc::new(Semaphore::new(job.concurrency));
    let cores = std::thread::available_parallelism()?.get();
    let mut shares: Vec<Vec<Site>> = (0..cores).map(|_| Vec::new()).collect();
    for (number, site) in sites(&job.addresses)?.into_iter().enumerate() {
        shares[number % cores].push(site);
    }
    let threads: Vec<_> = shares
        .into_iter()
        .map(|share| {
            let (job, under_way) = (job.clone(), under_way.clone());
            std::thread::spawn(move || crawl_all(share, job, under_way))
        })
        .collect();
    for thread in threads {
        thread.join().expect("a thread panics")?;
    }
    job.end()
}

/// One host and the paths asked of it.
struct Site {
    host: String,
    paths: Vec<String>,
}

fn sites(addresses: &[String]) -> Result<Vec<Site>, Error> {
    let mut sites: Vec<Site> = Vec::new();
    let mut known: HashMap<&str, usize> = HashMap::new();
    for address in addresses {
        let rest = address.strip_prefix("http://").ok_or("not http")?;
        let (host, path) = rest.split_at(rest.find('/').ok_or("no path")?);
        let at = *known.entry(host).or_insert_with(|| {
            sites.push(Site { host: host.to_owned(), paths: Vec::new() });
            sites.len() - 1
        });
        sites[at].paths.push(path.to_owned());
    }
    Ok(sites)
}

fn crawl_all(sites: Vec<Site>, job: Arc<Job>, under_way: Arc<Semaphore>) -> Result<(), Error> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    LocalSet::new().block_on(&runtime, async {
        let crawls: Vec<_> =
            sites.into_iter().map(|site| tokio::task::spawn_local(crawl(site, job.clone(), under_way.clone()))).collect();
        for crawl in crawls {
            crawl.await??;
        }
        Ok(())
    })
}

async fn crawl(site: Site, job: Arc<Job>, under_way: Arc<Semaphore>) -> Result<(), Error> {
    let _permit = under_way.acquire().await?;
    let stream = TcpStream::connect(&site.host).await?;
    stream.set_nodelay(true)?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    let running = tokio::task::spawn_local(connection);
    for path in &site.paths {
        sender.ready().await?;
        let request = Request::get(path).header(header::HOST, &site.host).body(Empty::<Bytes>::new())?;
        let mut response = sender.send_request(request).await?;
        if response.status() != StatusCode::OK {
            return Err(format!("{}{path}: {}", site.host, response.status()).into());
        }
        let mut reader = job.fields.reader();
        while let Some(frame) = response.frame().await {
            if let Some(piece) = frame?.data_ref() {
                reader.read(piece)?;
            }
        }
        job.write(&reader.end()?)?;
    }
    drop(sender);
    Ok(running.await??)
}
