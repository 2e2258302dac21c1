//! The session with the recorded server on a Cortex-M4 under QEMU: prints every octet that the client sends, the instructions and the
//! stack that the session took.

#![cfg_attr(target_os = "none", no_std, no_main)]

#[cfg(target_os = "none")]
#[path = "../../board/board.rs"]
mod board;

#[cfg(target_os = "none")]
#[path = "../../board/stack.rs"]
mod stack;

#[cfg(target_os = "none")]
mod program {
    use core::fmt::Write;

    use tls_session::{RECORDING, Replay, complete, now, session};

    use crate::board::{Console, timer};
    use crate::stack;

    /// Instructions between two ticks of the board's timer.
    const TICK: u64 = 40;

    pub fn run() {
        timer::start();
        stack::paint();
        let began = timer::now();
        let mut sent = [0u8; 512];
        let mut len = 0;
        let keep = |octets: &[u8]| {
            // What does not fit shows as a difference from the program on this machine.
            if let Some(place) = sent.get_mut(len..len + octets.len()) {
                place.copy_from_slice(octets);
                len += octets.len();
            }
        };
        let outcome = now(session(Replay::new(RECORDING, keep)));
        let ticks = timer::since(began);
        let used = stack::used();
        for octet in sent.iter().take(len) {
            // The console cannot fail: there is nowhere to say so.
            let _ = writeln!(Console, "{octet:02x}");
        }
        let _ = writeln!(Console, "complete: {}", complete(&outcome));
        let (instructions, own) = (ticks * TICK, used.saturating_sub(sent.len()));
        let _ = writeln!(
            Console,
            "# a session of TLS, handshake and a line each way: {instructions} instructions"
        );
        let _ = writeln!(Console, "# its stack, with both buffers: {own} octets");
    }
}

#[cfg(not(target_os = "none"))]
fn main() {
    println!("this program is for a Cortex-M: build it with --target thumbv7em-none-eabi");
}
