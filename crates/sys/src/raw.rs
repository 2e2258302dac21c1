//! The system calls that rustix lacks. Apart from SIMD, only these files of the workspace may contain `unsafe`.
//!
//! - `options.rs`: socket options and addresses
//! - `batch.rs`: recvmmsg and sendmmsg
//! - `wait.rs`: epoll_pwait2
//! - `device.rs`: interface and TUN requests
//! - `process.rs`: signals, namespaces, programs
//! - `backtrace.rs`: a function of the unwinder, for programs that are shipped
//!
//! Each function is safe to call: the memory it passes to the kernel is on its own stack or borrowed for the call.

#![allow(unsafe_code)]

#[cfg(shipped)]
mod backtrace;
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
    unshare_mounts,
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
