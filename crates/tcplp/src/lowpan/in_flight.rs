//! Frames handed to the link whose outcome is not known yet.

use chappe_core::Address;

/// Frames handed to the link: at most two of each of the host's datagrams, and as many of the relay's as its queue holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct InFlight<const OUT: usize, const FRAMES: usize> {
    own: [[Option<Flight>; 2]; OUT],
    relayed: [Option<Flight>; FRAMES],
    token: u32,
}

#[derive(Clone, Copy, Debug)]
struct Flight {
    token: u32,
    next: Address,
    what: What,
}

/// Whose frame it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A frame of the host's datagram in this place.
    Own(u8),
    /// A relayed frame: of the datagram forwarded under this tag, or a whole packet.
    Relayed(Option<u16>),
}

impl<const OUT: usize, const FRAMES: usize> InFlight<OUT, FRAMES> {
    pub const NONE: Self = InFlight {
        own: [[None; 2]; OUT],
        relayed: [None; FRAMES],
        token: 0,
    };

    fn frames(&self) -> impl Iterator<Item = &Flight> {
        let own = self.own.iter().flatten();
        own.chain(&self.relayed).flatten()
    }

    fn frames_mut(&mut self) -> impl Iterator<Item = &mut Option<Flight>> {
        let own = self.own.iter_mut().flatten();
        own.chain(&mut self.relayed)
    }

    pub fn to(&self, next: Address) -> usize {
        self.frames().filter(|flight| flight.next == next).count()
    }

    /// Whether there is a place for another frame of the host's datagram.
    pub fn has_own_place(&self, place: usize) -> bool {
        let places = self.own.get(place);
        places.is_some_and(|places| places.iter().any(Option::is_none))
    }

    pub fn has_relay_place(&self) -> bool {
        self.relayed.iter().any(Option::is_none)
    }

    pub fn launch(&mut self, next: Address, what: What) -> u32 {
        self.token = self.token.wrapping_add(1);
        let token = self.token;
        let free = |place: &&mut Option<Flight>| place.is_none();
        let place = match what {
            What::Own(number) => self
                .own
                .get_mut(usize::from(number))
                .and_then(|places| places.iter_mut().find(free)),
            What::Relayed(_) => self.relayed.iter_mut().find(free),
        };
        if let Some(place) = place {
            *place = Some(Flight { token, next, what });
        }
        token
    }

    pub fn land(&mut self, token: u32) -> Option<What> {
        let is = |flight: &mut Flight| flight.token == token;
        let landed = self.frames_mut().find_map(|place| place.take_if(is));
        landed.map(|flight| flight.what)
    }

    /// A datagram was given up: its frames in flight no longer belong to anything.
    pub fn disown(&mut self, what: What) {
        for flight in self.frames_mut().flatten() {
            if flight.what == what {
                flight.what = What::Relayed(None);
            }
        }
    }
}
