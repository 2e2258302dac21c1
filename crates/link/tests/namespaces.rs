//! The tunnel between real kernels: TCP through losses, wrong keys, another address, a restart, changed promises.
//!
//! Goal: what the crate page promises. Method: two hosts in namespaces with a bad medium between them. Where the kernel
//! forbids namespaces, it says so and passes. The machine may be busy, so rates are judged with room.

#[path = "medium/mod.rs"]
mod medium;
#[path = "medium/tunnels.rs"]
mod tunnels;

use std::thread;
use std::time::Duration as Span;

use chappe_core::Duration;
use chappe_link::{Key, State};
use chappe_wildnet::Service;
use medium::{Air, Field, address, inner, isolated, tcp};
use tunnels::{Ends, Running};

fn main() {
    isolated(|| {
        tcp_runs_through_losses();
        a_wrong_key_is_told();
        restarts_and_changes_go_on();
    });
}

/// Kernel TCP through 20 % loss in both directions: most of what the channel carries, every octet right; without the
/// link hardly anything.
fn tcp_runs_through_losses() {
    println!("tcp_runs_through_losses");
    let field = Field::new(Air::usual(0.2), 3);
    let (plain, _) = tcp(&field, address(1), "reno", 3.0);
    let ends = Ends::usual();
    let _hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
    let (through, right) = tcp(&field, inner(1), "reno", 3.0);
    println!("  plain {plain:.2} Mbit/s, through the link {through:.2} of 4.5");
    assert!(
        right && through > 2.0 && through > 3.0 * plain,
        "{plain} {through} {right}"
    );
}

/// Two ends with different keys never have a session, count why, and say what to do.
fn a_wrong_key_is_told() {
    println!("a_wrong_key_is_told");
    let field = Field::new(Air::usual(0.0), 4);
    let ends = Ends {
        keys: [Key::new([1; 32]), Key::new([2; 32])],
        ..Ends::usual()
    };
    let hosts = [0, 1].map(|host| Running::start(&field, host, &ends));
    thread::sleep(Span::from_millis(5_000));
    for host in &hosts {
        let status = host.show();
        assert_eq!(status.peers[0].state, State::Calling);
        assert!(status.strangers[0].1 > 0, "the other's hellos are counted");
        assert!(
            status.peers[0]
                .trouble
                .as_ref()
                .unwrap()
                .contains("the same key"),
            "{status:?}"
        );
    }
}

/// TCP goes on while promises and losses change, one direction dies for a while, and an end starts over.
fn restarts_and_changes_go_on() {
    println!("restarts_and_changes_go_on");
    let field = Field::new(Air::usual(0.0), 5);
    let ends = Ends::usual();
    let mut hosts = [0, 1].map(|host| Some(Running::start(&field, host, &ends)));
    let (goodput, right) = thread::scope(|scope| {
        let transfer = scope.spawn(|| tcp(&field, inner(1), "reno", 7.0));
        thread::sleep(Span::from_millis(1_500));
        field.set(|air| air.loss = [0.6; 2]);
        let slower = Service {
            deadline: Some(Duration::from_millis(400)),
            ..Service::RELIABLE
        };
        hosts[0]
            .as_ref()
            .unwrap()
            .changes
            .lock()
            .unwrap()
            .push(Box::new(move |tunnel| {
                tunnel.peer_mut("host1").unwrap().set_service(1, slower);
            }));
        thread::sleep(Span::from_millis(1_000));
        field.set(|air| air.loss = [0.0, 1.0]);
        thread::sleep(Span::from_millis(700));
        field.set(|air| air.loss = [0.0; 2]);
        thread::sleep(Span::from_millis(1_000));
        // The receiver's end starts over: what was under way is lost, as on any path, and TCP sends it again.
        hosts[1] = None;
        hosts[1] = Some(Running::start(&field, 1, &ends));
        transfer.join().unwrap()
    });
    println!("  {goodput:.2} Mbit/s");
    assert!(right, "an octet was wrong");
    assert!(goodput > 0.3, "{goodput}");
    let host = hosts[0].as_ref().unwrap();
    assert_eq!(host.counter("peer_restarts"), 1);
    assert_eq!(host.counter("forged") + host.counter("wrong_key"), 0);
}
