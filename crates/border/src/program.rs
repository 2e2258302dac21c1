//! A leaf whose program is a set of async tasks: what runs on a board, on simulated air.

use std::fmt;

use chappe_mac::dot15d4::Dot15d4;
use chappe_mote::{Air, Island, Runner, Stack, Virtual};
use chappe_tcplp::lowpan::{self, Losses, TcpHeaders};
use chappe_thermometer::{Memory, Rising, Setup, node, serve};

/// The TCP flows whose headers a leaf compresses at a time.
const FLOWS: usize = 2;

/// A leaf and its tasks.
pub struct Program {
    /// The tasks, as a node of the simulator.
    pub(crate) island: Island,
    stack: &'static Stack<'static, Virtual>,
}

impl Program {
    /// The thermometer's program. Its memory is leaked, as that of all motes: 8 KB.
    pub fn thermometer(setup: &Setup, headers: Option<TcpHeaders<FLOWS>>) -> Program {
        let memory = Box::leak(Box::new(Memory::new()));
        let (mote, local) = node::<_, 0>(memory, setup, headers);
        let air = Air::leak();
        let mote = Box::leak(Box::new(mote));
        let stack: &Stack<'_, _> = Box::leak(Box::new(Stack::new(mote, local, air.clock())));
        let runner = Runner::new(stack, air.antenna());
        let sensor = Rising(air.clock());
        let island = Island::new(
            air,
            vec![
                Box::pin(async move { runner.run().await }),
                Box::pin(async move { serve(stack, &sensor).await }),
            ],
        );
        Program { island, stack }
    }

    /// Looks at the link layer.
    pub(crate) fn mac<T: Default>(&self, f: impl FnOnce(&Dot15d4<0>) -> T) -> T {
        self.stack
            .look(|mote| mote.mac().downcast_ref().map(f).unwrap_or_default())
    }

    /// The counters of its 6LoWPAN interface, and its losses by reason.
    pub(crate) fn lowpan(&self) -> (lowpan::Counters, Losses) {
        self.stack.look(|mote| mote.lowpan())
    }
}

impl fmt::Debug for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.island.fmt(f)
    }
}
