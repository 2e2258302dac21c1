//! The system calls that rustix lacks: the only files of the workspace, SIMD aside, that may be unsafe.
//!
//! `options.rs`: socket options and addresses. `batch.rs`: recvmmsg and sendmmsg. `wait.rs`: epoll_pwait2. `device.rs`:
//! interface and TUN requests. `process.rs`: signals, namespaces, programs. Each function is safe to call: what it hands to the kernel lives
//! on its own stack or is borrowed for the length of the call.

#![allow(unsafe_code)]

mod batch;
mod device;
mod options;
mod process;
mod wait;

pub(crate) use batch::{Heard, receive_many, send_runs};
pub(crate) use device::{
    Offload, Query, attach_tun, interface_address, interface_number, set_offload, set_tun_offload,
};
pub(crate) use options::{bind_packet, get_option, set_option};
pub(crate) use process::{
    Signals, enter_before_exec, open_signals, schedule_first, unshare, unshare_in_child,
};
pub(crate) use wait::wait_events;

use std::io;

/// The result of a C call that returns -1 on failure.
fn check(result: libc::c_int) -> io::Result<libc::c_int> {
    match result {
        -1 => Err(io::Error::last_os_error()),
        value => Ok(value),
    }
}
