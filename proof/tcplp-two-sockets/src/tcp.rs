//! Every call of a TCP that a mote would make, with nothing known beforehand: its size less that of `bare.rs` is what TCP
//! takes. What the parts take of memory stands in a section of its own, for `cargo xtask sizes`.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "least.rs"]
mod least;

#[cfg(target_os = "none")]
mod program {
    use core::hint::black_box;

    use chappe_core::Instant;
    use chappe_tcplp::lowpan::{Interface, Leaf};
    use chappe_tcplp::tcp::{
        Config, Ecn, Endpoint, Heard, Listener, Local, Memory, NewReno, Range, Secret, Segment,
        Sent, Socket, Verdict,
    };

    /// Octets of a socket, a listener, an entry in flight, a range, what all sockets share, and the 6LoWPAN interface of
    /// a leaf with room for two datagrams of 536 octets.
    #[used]
    #[unsafe(link_section = ".sizes")]
    static SIZES: [u32; 6] = [
        size_of::<Socket<'static, NewReno>>() as u32,
        size_of::<Listener>() as u32,
        size_of::<Sent>() as u32,
        size_of::<Range>() as u32,
        size_of::<Local>() as u32,
        size_of::<Interface<(), Leaf, 1, 1, 0, 536>>() as u32,
    ];

    static LOCAL: Local = Local {
        address: core::net::IpAddr::V6(core::net::Ipv6Addr::LOCALHOST),
        secret: Secret::new([1; 16]),
        config: Config::STANDARD,
    };

    /// A socket's life in the order in which a driver would call, with every value from outside. What is lent is empty, so that
    /// little of the image is this program's own; the compiler does not know it.
    pub fn work() {
        let local = black_box(&LOCAL);
        let memory = Memory {
            send: black_box(&mut []),
            receive: black_box(&mut []),
            ranges: black_box(&mut []),
            flight: black_box(&mut []),
        };
        let Ok(mut socket) = Socket::new(local, memory, NewReno) else {
            return;
        };
        // A mote reaches its sockets through a reference.
        let socket = black_box(&mut socket);
        let buffer: &mut [u8] = black_box(&mut []);
        while black_box(true) {
            turn(local, socket, buffer);
        }
    }

    #[inline(never)]
    fn turn(local: &Local, socket: &mut Socket<'_, NewReno>, buffer: &mut [u8]) {
        let now = Instant::from_nanos(black_box(1));
        let listener = black_box(Listener::new(80, 1));
        let flow = socket.flow();
        let remote: Endpoint = flow.remote;
        black_box(local.secret.ephemeral_port(&flow, 0));
        drive(now, socket, remote, buffer);
        let Ok(segment) = Segment::parse_checked(buffer, &flow) else {
            return;
        };
        let mut answer = [0; 60];
        if socket.handle_segment(now, &segment, black_box(Ecn::Marked)) == Verdict::Refuse
            && let Some(reset) = segment.reset()
        {
            black_box(reset.emit(&flow, &mut answer));
        }
        if cfg!(feature = "cookies") {
            let syn_ack = socket.answer_by_cookie(now, remote, &segment);
            black_box(syn_ack.emit(&flow, &mut answer));
            black_box(socket.accept_cookie(now, remote, &segment, black_box(Ecn::Marked)));
        }
        if listener.hear(&segment) == Heard::Syn {
            black_box(socket.accept(now, remote, &segment).is_ok());
        }
    }

    fn drive(now: Instant, socket: &mut Socket<'_, NewReno>, remote: Endpoint, buffer: &mut [u8]) {
        match black_box(0) {
            0 => drop(black_box(socket.connect(now, 1, remote))),
            1 => drop(black_box(socket.write(buffer))),
            2 => drop(black_box(socket.read(buffer))),
            3 => socket.shutdown(),
            4 => socket.close(now),
            5 => socket.abort(),
            6 => socket.handle_timeout(now),
            7 => drop(black_box(socket.poll_segment(now, buffer))),
            8 => drop(black_box(socket.poll_timeout())),
            _ => drop(black_box((
                socket.state(),
                socket.failure(),
                socket.at_end(),
            ))),
        }
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
