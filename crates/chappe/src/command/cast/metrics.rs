//! Counters for Prometheus, over a minimal HTTP server.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chappe_cast::session::{View, role_word};
use chappe_core::DropReason;
use chappe_live::Statistics;

use super::exposition::{escaped, family};
use super::fleet_metrics::Source;

/// The metrics as text, shared with the serving thread.
pub struct Metrics(Arc<Mutex<String>>);

impl Metrics {
    /// Serves at `listener` as long as the program runs, one request at a time. Every path returns the metrics, and those of the
    /// fleet after them if there are receipts.
    pub fn serve(listener: TcpListener, mut fleet: Option<Source>) -> io::Result<Metrics> {
        let text = Arc::new(Mutex::new(String::new()));
        let served = text.clone();
        std::thread::Builder::new().name("metrics".into()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(mut stream) = stream else { continue };
                let limit = Some(Duration::from_secs(1));
                let _ = stream.set_read_timeout(limit).and(stream.set_write_timeout(limit));
                // Closing a socket with unread input resets it and may cut off the answer, so the request is read and ignored.
                let _ = stream.read(&mut [0; 4096]);
                let mut body = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
                body += fleet.as_mut().map_or("", Source::text);
                let _ = write!(
                    stream,
                    "HTTP/1.1 200 OK\r\nContent-Type: text/plain; version=0.0.4\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
            }
        })?;
        Ok(Metrics(text))
    }

    /// Replaces the text by the current values.
    pub fn update(&self, view: &View<'_>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = text(view);
    }
}

fn text(view: &View<'_>) -> String {
    let mut text = String::new();
    put_sent(&mut text, view.statistics);
    put_pace(&mut text, view);
    put_received(&mut text, view.statistics);
    put_others(&mut text, view);
    put_batches(&mut text, view);
    text
}

/// A family with a single value: name, help, value.
type Single = (&'static str, &'static str, u64);

fn put_counters(text: &mut String, counters: &[Single]) {
    for &(name, help, value) in counters {
        family(
            text,
            name,
            "counter",
            help,
            &[(String::new(), value as f64)],
        );
    }
}

fn put_gauge(text: &mut String, name: &str, help: &str, rows: impl Iterator<Item = (String, f64)>) {
    family(text, name, "gauge", help, &rows.collect::<Vec<_>>());
}

fn put_sent(text: &mut String, statistics: &Statistics) {
    let counters = [
        (
            "frames_sent_total",
            "Frames that the kernel accepted.",
            statistics.frames_sent,
        ),
        (
            "bytes_sent_total",
            "Octets of these frames.",
            statistics.octets_sent,
        ),
    ];
    put_counters(text, &counters);
}

fn put_pace(
    text: &mut String,
    View {
        member, statistics, ..
    }: &View<'_>,
) {
    let bare = |value: u64| [(String::new(), value as f64)].into_iter();
    put_gauge(
        text,
        "pace_bps",
        "The present pace, at most --rate.",
        bare(statistics.rate),
    );
    let decides = statistics.decider.map(|node| {
        let name = escaped(&member.roster().seat().group.name_of(node));
        (format!("{{node=\"{node}\",name=\"{name}\"}}"), 1.0)
    });
    put_gauge(
        text,
        "pace_decided_by",
        "The neighbour whose path decides the pace, as it tells of it.",
        decides.into_iter(),
    );
    put_gauge(
        text,
        "pace_of_half_bps",
        "The pace that half of the neighbours have let pass.",
        bare(statistics.carried),
    );
}

fn put_received(text: &mut String, statistics: &Statistics) {
    let counters = [
        (
            "frames_lost_in_queue_total",
            "Frames lost because the receive queue was full.",
            statistics.lost_in_queue,
        ),
        (
            "frames_received_total",
            "Frames that were decrypted and used.",
            statistics.frames_received,
        ),
        (
            "bytes_received_total",
            "Octets of authentic frames.",
            statistics.octets_received,
        ),
        (
            "refused_total",
            "Frames that the kernel refused.",
            statistics.refused,
        ),
    ];
    put_counters(text, &counters);
    let dropped = DropReason::ALL.iter().map(|why| {
        let labels = format!("{{reason=\"{}\"}}", why.name());
        (labels, statistics.dropped(*why) as f64)
    });
    family(
        text,
        "dropped_total",
        "counter",
        "Frames that were not used, by reason.",
        &dropped.collect::<Vec<_>>(),
    );
}

/// The other members, and the links from them.
fn put_others(text: &mut String, view: &View<'_>) {
    let members = view.member.roster().others(view.now).map(|record| {
        let (node, role) = (record.node, role_word(record));
        let name = escaped(&record.name);
        let labels = format!("{{node=\"{node}\",name=\"{name}\",role=\"{role}\"}}");
        (labels, 1.0)
    });
    put_gauge(text, "member", "Members that are alive.", members);
    let links = view.statistics.neighbours.iter().map(|near| {
        let from = near.address.node_number().unwrap_or(0);
        (format!("{{from=\"{from}\"}}"), near.from)
    });
    put_gauge(
        text,
        "delivery_ratio",
        "Share of a neighbour's broadcasts that is received here.",
        links,
    );
}

/// The batches of transfers, and those that members have.
fn put_batches(text: &mut String, View { now, member, .. }: &View<'_>) {
    let all = member.tickets().map(|ticket| {
        let labels = format!("{{transfer=\"{}\"}}", ticket.name());
        (labels, f64::from(ticket.cut.batches()))
    });
    put_gauge(text, "batches", "Batches of a transfer.", all);
    let done = member.roster().others(*now).flat_map(|record| {
        record.transfers.iter().map(|transfer| {
            let labels = format!(
                "{{node=\"{}\",transfer=\"{:016x}\"}}",
                record.node, transfer.0
            );
            (labels, f64::from(transfer.2))
        })
    });
    put_gauge(
        text,
        "batches_done",
        "Batches that a member has received.",
        done,
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::net::TcpStream;

    /// Goal: the endpoint has the present state of the fleet. Method: an account that is none comes and goes.
    #[test]
    fn the_fleet_is_served_as_it_is_now() {
        let folder = std::env::temp_dir().join(format!("chappe-metrics-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("lab.fleet")).unwrap();
        let members = [(1, "base".to_owned(), true)];
        chappe_cast::group::create(&folder.join("lab"), &members).unwrap();
        let source = Source::new(folder.join("lab.fleet"), &folder.join("lab.group"));
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        Metrics::serve(listener, Some(source)).unwrap();
        let get = || {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
            let mut answer = String::new();
            stream.read_to_string(&mut answer).unwrap();
            let length = answer.split_once("Content-Length: ").unwrap().1;
            let (length, body) = length.split_once("\r\n").unwrap();
            let body = body.split_once("\r\n\r\n").unwrap().1;
            assert_eq!(length.parse::<usize>().unwrap(), body.len());
            body.to_owned()
        };
        assert!(get().contains("\nchappe_cast_fleet_problems 0\n"));
        fs::write(folder.join("lab.fleet/1-77.fleet"), "nonsense").unwrap();
        assert!(get().contains("\nchappe_cast_fleet_problems 1\n"));
        fs::remove_file(folder.join("lab.fleet/1-77.fleet")).unwrap();
        assert!(get().contains("\nchappe_cast_fleet_problems 0\n"));
        fs::remove_dir_all(&folder).unwrap();
    }
}
