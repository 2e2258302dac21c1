//! The stack that tasks share.

use core::any::Any;
use core::cell::{Cell, RefCell};
use core::future::poll_fn;
use core::net::{IpAddr, Ipv6Addr, SocketAddrV6};
use core::task::Poll;

use chappe_core::{Instant, LinkNode, Mac, OverMac, RadioNode};
use chappe_tcplp::host::Host;
use chappe_tcplp::lowpan::{self, Headers, Interface, Losses, Routes};
use chappe_tcplp::tcp::{Local, Socket};

use crate::clock::Clock;
use crate::sockets::Sockets;
use crate::waker::Waiting;

/// A host as its tasks reach it.
pub trait Sharing<'a> {
    /// Its TCP sockets and their application.
    fn parts(&mut self) -> (&mut [Socket<'a>], &mut Sockets<'a>);

    /// Accepts connections on a port. False if the host listens on eight ports already.
    fn listen(&mut self, port: u16) -> bool;
}

impl<'a, const TCP: usize> Sharing<'a> for Host<'a, Sockets<'a>, TCP> {
    fn parts(&mut self) -> (&mut [Socket<'a>], &mut Sockets<'a>) {
        self.parts_mut()
    }

    fn listen(&mut self, port: u16) -> bool {
        Host::listen(self, port)
    }
}

/// A node with a radio and a shared host.
pub trait Mote<'a>: RadioNode {
    /// The host on top.
    fn host(&mut self) -> &mut dyn Sharing<'a>;

    /// Takes what the host has to send, after it was changed.
    fn settle(&mut self, now: Instant);

    /// The link layer, to look at.
    fn mac(&self) -> &dyn Any;

    /// The counters of its 6LoWPAN interface.
    fn lowpan(&self) -> (lowpan::Counters, Losses);
}

impl<
    'a,
    M: Mac + 'static,
    R: Routes,
    C: Headers,
    const TCP: usize,
    const OUT: usize,
    const IN: usize,
    const FRAMES: usize,
    const MTU: usize,
> Mote<'a> for OverMac<M, Interface<Host<'a, Sockets<'a>, TCP>, R, OUT, IN, FRAMES, MTU, C>>
where
    Interface<Host<'a, Sockets<'a>, TCP>, R, OUT, IN, FRAMES, MTU, C>: LinkNode,
{
    fn host(&mut self) -> &mut dyn Sharing<'a> {
        self.link.host_mut()
    }

    fn settle(&mut self, now: Instant) {
        self.link.with_host(now, |_| ());
        self.handle_timeout(now);
    }

    fn mac(&self) -> &dyn Any {
        &self.mac
    }

    fn lowpan(&self) -> (lowpan::Counters, Losses) {
        (*self.link.counters(), *self.link.losses())
    }
}

/// A node that several tasks use, on one executor: one [`Runner`](crate::Runner), and sockets.
pub struct Stack<'a, K> {
    mote: RefCell<&'a mut dyn Mote<'a>>,
    local: &'a Local,
    clock: K,
    /// The runner waits for what the sockets have changed.
    runner: RefCell<Waiting>,
    changed: Cell<bool>,
    /// The server of names.
    names: Cell<Option<SocketAddrV6>>,
}

impl<'a, K: Clock> Stack<'a, K> {
    /// A stack over a node whose host uses `local`, with this clock.
    pub fn new(mote: &'a mut dyn Mote<'a>, local: &'a Local, clock: K) -> Stack<'a, K> {
        Stack {
            mote: RefCell::new(mote),
            local,
            clock,
            runner: RefCell::default(),
            changed: Cell::new(false),
            names: Cell::new(None),
        }
    }

    /// The address of its host.
    pub fn address(&self) -> Ipv6Addr {
        match self.local.address {
            IpAddr::V6(address) => address,
            IpAddr::V4(address) => address.to_ipv6_mapped(),
        }
    }

    /// The clock that all its sockets use.
    pub fn clock(&self) -> K {
        self.clock
    }

    /// Sets the server that resolves names.
    pub fn resolve_by(&self, server: SocketAddrV6) {
        self.names.set(Some(server));
    }

    /// The server that resolves names.
    pub fn names(&self) -> Option<SocketAddrV6> {
        self.names.get()
    }

    /// A number that depends on the secret, the time and `salt`: an attacker off the path cannot guess it.
    #[cfg(feature = "dns")]
    pub(crate) fn unpredictable(&self, salt: u32) -> u32 {
        use chappe_tcplp::tcp::{Endpoint, Flow};
        let here = Endpoint::new(self.local.address, 0);
        let nanos = self.clock.now().nanos();
        // The clock enters as an address: only hashed numbers leave the secret.
        let time = Ipv6Addr::from((u128::from(nanos) << 32) | u128::from(salt));
        let flow = Flow::new(here, Endpoint::new(IpAddr::V6(time), 0));
        self.local.secret.timestamp_offset(&flow)
    }

    /// Calls `f` with the node, to look at its counters. Panics if `f` uses the stack.
    pub fn look<T>(&self, f: impl FnOnce(&dyn Mote<'a>) -> T) -> T {
        f(&**self.mote.borrow())
    }

    pub(crate) fn local(&self) -> &'a Local {
        self.local
    }

    /// Calls `f` with the host, then lets the runner send what has come of it.
    pub(crate) fn with<T>(&self, f: impl FnOnce(Instant, &mut dyn Sharing<'a>) -> T) -> T {
        let now = self.clock.now();
        let mut mote = self.mote.borrow_mut();
        let result = f(now, mote.host());
        mote.settle(now);
        self.changed.set(true);
        self.runner.borrow_mut().wake();
        result
    }

    /// Like [`with`](Self::with), for what may have to wait: while it does, nothing has changed, and the runner sleeps on.
    pub(crate) fn poll<T>(
        &self,
        f: impl FnOnce(Instant, &mut dyn Sharing<'a>) -> Poll<T>,
    ) -> Poll<T> {
        let now = self.clock.now();
        let pending = f(now, self.mote.borrow_mut().host());
        if pending.is_ready() {
            self.with(|_, _| ());
        }
        pending
    }

    /// Calls `f` with the node, for the runner.
    pub(crate) fn with_mote<T>(&self, f: impl FnOnce(Instant, &mut dyn Mote<'a>) -> T) -> T {
        let now = self.clock.now();
        let mut mote = self.mote.borrow_mut();
        f(now, &mut **mote)
    }

    /// Returns when a socket has changed something since the last call.
    pub(crate) async fn changed(&self) {
        poll_fn(|context| {
            if self.changed.take() {
                return Poll::Ready(());
            }
            self.runner.borrow_mut().register(context.waker());
            Poll::Pending
        })
        .await;
    }
}
