//! Requests as the server takes them: a method, a path, and a host that cannot be another site's.

use std::net::{IpAddr, SocketAddr};

/// What the server answers to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    /// The page, which loads the data.
    Page,
    /// The data of the recording or daemon.
    Data,
    /// Nothing, with this status.
    Refused(&'static str),
}

/// Reads a request's head. `own` is the address that the server listens on, `token` what every request must bring.
pub(crate) fn answer(head: &str, own: SocketAddr, token: Option<&str>) -> Answer {
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (method, target, version) = (words.next(), words.next(), words.next());
    let (Some(method), Some(target), Some("HTTP/1.1" | "HTTP/1.0"), None) =
        (method, target, version, words.next())
    else {
        return Answer::Refused("400 Bad Request");
    };
    let mut hosts = lines.filter_map(|line| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("host").then(|| value.trim())
    });
    // A name that leads here may be another site's: its pages must not read ours (DNS rebinding).
    let own_host = |host: &str| is_own(host, own);
    match (hosts.next(), hosts.next()) {
        (Some(host), None) if own_host(host) => {}
        _ => return Answer::Refused("421 Misdirected Request"),
    }
    if method != "GET" {
        return Answer::Refused("405 Method Not Allowed");
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let given = query
        .split('&')
        .find_map(|pair| pair.strip_prefix("token="));
    if let Some(token) = token
        && !given.is_some_and(|given| same(given, token))
    {
        return Answer::Refused("403 Forbidden");
    }
    match path {
        "/" => Answer::Page,
        "/data" => Answer::Data,
        _ => Answer::Refused("404 Not Found"),
    }
}

/// Whether a `Host` is an address, or `localhost`, with our port.
fn is_own(host: &str, own: SocketAddr) -> bool {
    if let Ok(address) = host.parse::<SocketAddr>() {
        return address.port() == own.port();
    }
    let (name, port) = match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => {
            (name, port.parse().ok())
        }
        _ => (host, Some(80)),
    };
    let bare = name.trim_start_matches('[').trim_end_matches(']');
    port == Some(own.port()) && (name == "localhost" || bare.parse::<IpAddr>().is_ok())
}

/// Whether two words are equal, in a time that does not depend on where they differ.
fn same(a: &str, b: &str) -> bool {
    let differ = a
        .bytes()
        .zip(b.bytes())
        .fold(0, |differ, (a, b)| differ | a ^ b);
    a.len() == b.len() && differ == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(line: &str, host: &str, token: Option<&str>) -> Answer {
        let head = format!("{line}\r\nHost: {host}\r\nAccept: */*\r\n\r\n");
        answer(&head, "127.0.0.1:8080".parse().unwrap(), token)
    }

    #[test]
    fn only_the_page_and_its_data_are_served() {
        let host = "127.0.0.1:8080";
        assert_eq!(asked("GET / HTTP/1.1", host, None), Answer::Page);
        assert_eq!(asked("GET /data?x=1 HTTP/1.1", host, None), Answer::Data);
        for path in [
            "/etc/passwd",
            "/../etc/passwd",
            "/data/..",
            "//",
            "/%2e%2e",
            "data",
            "*",
        ] {
            let got = asked(&format!("GET {path} HTTP/1.1"), host, None);
            assert_eq!(got, Answer::Refused("404 Not Found"), "{path}");
        }
        for line in ["", "GET", "GET /", "GET / HTTP/2", "GET / x HTTP/1.1", "\0"] {
            assert_eq!(asked(line, host, None), Answer::Refused("400 Bad Request"));
        }
        let posted = asked("POST / HTTP/1.1", host, None);
        assert_eq!(posted, Answer::Refused("405 Method Not Allowed"));
    }

    #[test]
    fn hosts_of_other_sites_are_refused() {
        for host in [
            "localhost:8080",
            "127.0.0.1:8080",
            "[::1]:8080",
            "192.168.1.2:8080",
        ] {
            assert_eq!(asked("GET / HTTP/1.1", host, None), Answer::Page, "{host}");
        }
        let refused = Answer::Refused("421 Misdirected Request");
        for host in [
            "evil.example:8080",
            "evil.example",
            "127.0.0.1:81",
            "127.0.0.1",
            "",
            "localhost",
            "localhost:8080.evil:1",
        ] {
            assert_eq!(asked("GET / HTTP/1.1", host, None), refused, "{host}");
        }
        let own = "127.0.0.1:8080".parse().unwrap();
        assert_eq!(answer("GET / HTTP/1.1\r\n\r\n", own, None), refused);
        let two = "GET / HTTP/1.1\r\nHost: localhost:8080\r\nHost: evil\r\n\r\n";
        assert_eq!(answer(two, own, None), refused);
    }

    #[test]
    fn a_token_is_asked_for_every_time() {
        let host = "127.0.0.1:8080";
        let asked = |path: &str| asked(&format!("GET {path} HTTP/1.1"), host, Some("secret"));
        assert_eq!(asked("/?token=secret"), Answer::Page);
        assert_eq!(asked("/data?a=b&token=secret"), Answer::Data);
        for path in [
            "/",
            "/data",
            "/?token=",
            "/?token=secre",
            "/?token=secret1",
            "/data?Token=secret",
        ] {
            assert_eq!(asked(path), Answer::Refused("403 Forbidden"), "{path}");
        }
    }
}
