//! The status as text.

use std::fmt::Write;

use super::{PeerStatus, Status};
use crate::coverage::Egress;

/// Columns before a value.
const INDENT: usize = 18;

impl Status {
    /// The status as a few lines of at most `width` columns. With an earlier snapshot, the overhead is that since then.
    pub fn text(&self, width: usize, earlier: Option<&Status>) -> String {
        let mut text = format!("{}, MTU {}\n", self.device, self.mtu);
        let refused = |status: &Status| {
            let mut counts = status.unmatched.iter();
            let found = counts.find(|count| count.0 == "refused_datagrams");
            found.map_or(0, |count| count.1)
        };
        // An old refusal is not shown again.
        if let Some(refusal) = &self.refusal
            && earlier.is_none_or(|earlier| refused(earlier) < refused(self))
        {
            item(&mut text, width, "kernel", refusal);
        }
        for peer in &self.peers {
            let earlier = earlier.and_then(|status| {
                let mut peers = status.peers.iter();
                peers.find(|other| other.name == peer.name)
            });
            peer.describe(&mut text, width, earlier);
        }
        text
    }
}

impl PeerStatus {
    fn describe(&self, text: &mut String, width: usize, earlier: Option<&PeerStatus>) {
        let gauge = |key: &str| self.gauge(key);
        let percent = |key: &str| self.gauge(key) * 100.0;
        let mbit = |key: &str| self.gauge(key) / 1e6;
        let _ = writeln!(text, "\n  {}: {}", self.name, self.state.name());
        if let Some(trouble) = &self.trouble {
            item(text, width, "trouble", trouble);
        }
        if self.counter("sessions") == 0 {
            return;
        }
        item(
            text,
            width,
            "goodput",
            &format!(
                "{:.2} Mbit/s out, {:.2} in; {:.0} packets queued",
                mbit("goodput_out_bps"),
                mbit("goodput_in_bps"),
                gauge("queued_packets"),
            ),
        );
        item(
            text,
            width,
            "path out",
            &format!(
                "{:.2} Mbit/s, {:.2} after losses",
                mbit("pace_bps"),
                mbit("bound_bps"),
            ),
        );
        item(
            text,
            width,
            "losses",
            &format!(
                "{:.1} % out in bursts of {:.1} frames, {:.1} % in",
                percent("loss_out_ratio"),
                gauge("burst_out_frames"),
                percent("loss_in_ratio"),
            ),
        );
        item(text, width, "late or lost", &self.residual());
        item(text, width, "overhead", &self.overhead(earlier));
        item(text, width, "round trip", &self.round_trip());
        if self.paths.len() > 1 {
            for path in &self.paths {
                item(text, width, "", &path.line());
            }
        }
        match &self.coverage.egress {
            Egress::Radio(_) => item(text, width, "radio", &self.coverage.to_string()),
            Egress::Wire(_) if self.coverage.distance.is_some() => {
                item(text, width, "radio", &self.coverage.to_string());
            }
            _ => {}
        }
    }

    fn residual(&self) -> String {
        format!(
            "{:.2} % since the start, after recovery",
            self.gauge("residual_ratio") * 100.0
        )
    }

    fn overhead(&self, earlier: Option<&PeerStatus>) -> String {
        let since = |key: &str| {
            let before = earlier.map_or(0, |earlier| earlier.counter(key));
            self.counter(key).saturating_sub(before) as f64
        };
        let new = since("bodies");
        let more: f64 = ["repeats", "repairs"].map(since).iter().sum();
        if new == 0.0 {
            return "no new frames were sent".to_owned();
        }
        let idle = match since("fills") / new * 100.0 {
            fills if fills >= 0.05 => format!(", plus {fills:.1} in idle airtime"),
            _ => String::new(),
        };
        format!(
            "{:.1} repeats and repairs per 100 new frames (least possible: {:.1}){idle}",
            more / new * 100.0,
            self.gauge("overhead_bound_ratio") * 100.0
        )
    }

    fn round_trip(&self) -> String {
        let [smoothed, least] = ["round_trip_s", "round_trip_least_s"].map(|key| self.gauge(key));
        if smoothed.is_nan() {
            return "unknown yet".to_owned();
        }
        format!("{:.1} ms, least {:.1} ms", smoothed * 1e3, least * 1e3)
    }
}

/// Writes a name and a text, wrapped at `width` and indented.
fn item(text: &mut String, width: usize, name: &str, said: &str) {
    let _ = write!(text, "    {name:<14}");
    let mut column = INDENT;
    for word in said.split(' ') {
        let len = word.chars().count();
        if column > INDENT && column + 1 + len > width {
            let _ = write!(text, "\n{:INDENT$}", "");
            column = INDENT;
        }
        if column > INDENT {
            text.push(' ');
            column += 1;
        }
        text.push_str(word);
        column += len;
    }
    text.push('\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_wrapped_at_the_width() {
        let mut text = String::new();
        let said = "no answer from other: check that it runs, that the address is right, that both hosts have the same key, and that no firewall blocks it";
        item(&mut text, 60, "trouble", said);
        assert!(
            text.lines().all(|line| line.chars().count() <= 60),
            "{text}"
        );
        let words = |text: &str| {
            text.split_whitespace()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&text)[1..], words(said));
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.starts_with(&" ".repeat(INDENT)))
        );
    }
}
