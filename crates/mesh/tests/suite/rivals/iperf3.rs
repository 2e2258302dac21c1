//! The program iperf3: a TCP connection for some seconds, as anyone can repeat it.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use chappe_sys::namespace::NetworkNamespace;

use super::traffic::Way;

/// How long the ends may take to agree on what was measured, after it was.
const AGREES: Duration = Duration::from_secs(30);

/// `iperf3` at both ends.
pub struct Iperf3 {
    server: Child,
    client: Child,
    ends: Instant,
}

impl Iperf3 {
    /// Starts both ends. What passes in the first `(rises, _)` is not counted, and what passes in the `seconds` after that is.
    pub fn start(
        (from, to): (&NetworkNamespace, &NetworkNamespace),
        way: &Way,
        (rises, seconds): (Duration, u64),
    ) -> Iperf3 {
        let mut server = Command::new("iperf3");
        server.args(["--server", "--one-off", "--forceflush"]);
        server.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let mut server = to.run(|| server.spawn()).unwrap().expect("iperf3");
        let mut says = BufReader::new(server.stdout.take().unwrap()).lines();
        let listens = says.any(|line| line.is_ok_and(|line| line.contains("listening")));
        assert!(listens, "iperf3 does not listen");
        // Its report needs a reader until the end.
        thread::spawn(move || says.count());
        let mut client = Command::new("iperf3");
        client.args(["--client", &way.address, "--json"]);
        client.args(["--congestion", &way.congestion]);
        client.args(["--tos", &way.traffic_class.to_string()]);
        client.args(["--omit", &rises.as_secs().to_string()]);
        client.args(["--time", &seconds.to_string()]);
        client.stdout(Stdio::piped()).stderr(Stdio::inherit());
        let client = from.run(|| client.spawn()).unwrap().expect("iperf3");
        let ends = Instant::now() + rises + Duration::from_secs(seconds) + AGREES;
        Iperf3 {
            server,
            client,
            ends,
        }
    }

    /// What the server received, in kbit/s; 0 if the ends did not agree in time.
    pub fn kbps(mut self) -> f64 {
        let is_over = |client: &mut Child| client.try_wait().is_ok_and(|ended| ended.is_some());
        while !is_over(&mut self.client) && Instant::now() < self.ends {
            thread::sleep(Duration::from_millis(50));
        }
        let (_, mut report) = (self.client.kill(), String::new());
        if let Some(stdout) = &mut self.client.stdout {
            let _ = stdout.read_to_string(&mut report);
        }
        received(&report).unwrap_or(0.0)
    }
}

impl Drop for Iperf3 {
    fn drop(&mut self) {
        for end in [&mut self.client, &mut self.server] {
            let _ = end.kill();
            let _ = end.wait();
        }
    }
}

/// `end.sum_received.bits_per_second` of a report, in kbit/s.
fn received(report: &str) -> Option<f64> {
    let sum = report.split("\"sum_received\"").nth(1)?;
    let number = sum.split("\"bits_per_second\":").nth(1)?;
    let end = number.find([',', '}', '\n'])?;
    Some(number[..end].trim().parse::<f64>().ok()? / 1e3)
}
