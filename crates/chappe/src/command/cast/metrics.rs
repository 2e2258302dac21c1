//! Counters for Prometheus, over a minimal HTTP server.

use std::io::{self, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use chappe_cast::session::{View, role_word};
use chappe_core::DropReason;

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
    let (statistics, member) = (view.statistics, view.member);
    let mut text = String::new();
    let mut put = |name: &str, kind: &str, help: &str, rows: &[(String, f64)]| {
        family(&mut text, name, kind, help, rows);
    };
    let bare = |value: u64| [(String::new(), value as f64)];
    put(
        "frames_sent_total",
        "counter",
        "Frames that the kernel accepted.",
        &bare(statistics.frames_sent),
    );
    put(
        "bytes_sent_total",
        "counter",
        "Octets of these frames.",
        &bare(statistics.octets_sent),
    );
    put(
        "pace_bps",
        "gauge",
        "The present pace, at most --rate.",
        &bare(statistics.rate),
    );
    let decides = statistics.decider.map(|node| {
        let name = escaped(&member.roster().seat().group.name_of(node));
        (format!("{{node=\"{node}\",name=\"{name}\"}}"), 1.0)
    });
    let decides: Vec<(String, f64)> = decides.into_iter().collect();
    put(
        "pace_decided_by",
        "gauge",
        "The neighbour whose path decides the pace, as it tells of it.",
        &decides,
    );
    put(
        "pace_of_half_bps",
        "gauge",
        "The pace that half of the neighbours have let pass.",
        &bare(statistics.carried),
    );
    put(
        "frames_lost_in_queue_total",
        "counter",
        "Frames lost because the receive queue was full.",
        &bare(statistics.lost_in_queue),
    );
    put(
        "frames_received_total",
        "counter",
        "Frames that were decrypted and used.",
        &bare(statistics.frames_received),
    );
    put(
        "bytes_received_total",
        "counter",
        "Octets of authentic frames.",
        &bare(statistics.octets_received),
    );
    put(
        "refused_total",
        "counter",
        "Frames that the kernel refused.",
        &bare(statistics.refused),
    );
    let dropped: Vec<(String, f64)> = DropReason::ALL
        .iter()
        .map(|why| {
            (
                format!("{{reason=\"{}\"}}", why.name()),
                statistics.dropped(*why) as f64,
            )
        })
        .collect();
    put(
        "dropped_total",
        "counter",
        "Frames that were not used, by reason.",
        &dropped,
    );
    let members: Vec<(String, f64)> = member
        .roster()
        .others(view.now)
        .map(|record| {
            let (node, role) = (record.node, role_word(record));
            let name = escaped(&record.name);
            let labels = format!("{{node=\"{node}\",name=\"{name}\",role=\"{role}\"}}");
            (labels, 1.0)
        })
        .collect();
    put("member", "gauge", "Members that are alive.", &members);
    let links: Vec<(String, f64)> = statistics
        .neighbours
        .iter()
        .map(|near| {
            (
                format!("{{from=\"{}\"}}", near.address.node_number().unwrap_or(0)),
                near.from,
            )
        })
        .collect();
    put(
        "delivery_ratio",
        "gauge",
        "Share of a neighbour's broadcasts that is received here.",
        &links,
    );
    let done = member.roster().others(view.now).flat_map(|record| {
        let row = |transfer: &(u64, _, u32)| {
            let labels = format!(
                "{{node=\"{}\",transfer=\"{:016x}\"}}",
                record.node, transfer.0
            );
            (labels, f64::from(transfer.2))
        };
        record.transfers.iter().map(row).collect::<Vec<_>>()
    });
    let done: Vec<(String, f64)> = done.collect();
    let all = member.tickets().map(|ticket| {
        let labels = format!("{{transfer=\"{}\"}}", ticket.name());
        (labels, f64::from(ticket.cut.batches()))
    });
    let all: Vec<(String, f64)> = all.collect();
    put("batches", "gauge", "Batches of a transfer.", &all);
    put(
        "batches_done",
        "gauge",
        "Batches that a member has received.",
        &done,
    );
    text
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
