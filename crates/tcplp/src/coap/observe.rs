//! Observing a resource (RFC 7641): the server's list of those who asked to hear of changes.

use core::net::Ipv6Addr;

use super::message::{Block, Code, Kind, Message, Token, Writer, option};

/// An observer: address and port.
type Peer = (Ipv6Addr, u16);

/// Notifications to an observer between two confirmable ones. RFC 7641 4.5 asks for one in 24 hours at least, so that
/// an observer that has gone is found out.
const CONFIRM_EVERY: u8 = 8;
/// Confirmable notifications without an answer after which an observer is forgotten.
const UNANSWERED_MAX: u8 = 2;
/// Sequence numbers have 24 bits (RFC 7641 3.4).
const SEQUENCE_MASK: u32 = 0x00ff_ffff;

/// Up to `N` observers of one resource.
///
/// The server calls [`request`](Self::request) for each GET of the resource, [`answer`](Self::answer) for acknowledgements and
/// resets, [`changed`](Self::changed) when the resource changes, and then [`poll`](Self::poll) until it returns `None`.
#[derive(Clone, Debug)]
pub struct Observers<const N: usize> {
    known: [Option<Observer>; N],
    sequence: u32,
    id: u16,
}

#[derive(Clone, Copy, Debug)]
struct Observer {
    peer: Peer,
    token: Token,
    /// It has not been told of the last change.
    due: bool,
    /// Notifications since the last confirmable one.
    plain: u8,
    /// Confirmable ones that were not answered, and the last one's number.
    unanswered: u8,
    last: u16,
}

impl<const N: usize> Observers<N> {
    /// An empty list. `id` is the first message number, which should be random (RFC 7252 4.4).
    pub const fn new(id: u16) -> Observers<N> {
        Observers {
            known: [None; N],
            sequence: 0,
            id,
        }
    }

    /// The number of observers.
    pub fn len(&self) -> usize {
        self.known.iter().flatten().count()
    }

    /// Whether no one observes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Registers the sender of a GET with Observe 0 and returns the value of the Observe option of the answer. Observe 1
    /// ends the registration. `None`: the answer has no such option, because it was not asked for or all places are taken.
    pub fn request(&mut self, peer: Peer, message: &Message<'_>) -> Option<u32> {
        let mut options = message.options();
        let (_, value) = options.find(|(number, _)| *number == option::OBSERVE)?;
        let same = |known: &&mut Option<Observer>| known.is_some_and(|known| known.peer == peer);
        match value {
            [] | [0] => {}
            _ => {
                if let Some(place) = self.known.iter_mut().find(same) {
                    *place = None;
                }
                return None;
            }
        }
        let free = self
            .known
            .iter()
            .position(|known| known.is_none_or(|known| known.peer == peer));
        *self.known.get_mut(free?)? = Some(Observer {
            peer,
            token: message.token,
            due: false,
            plain: 0,
            unanswered: 0,
            last: 0,
        });
        Some(self.sequence)
    }

    /// An empty message arrived: an acknowledgement keeps an observer, a reset ends its registration (RFC 7641 3.6).
    pub fn answer(&mut self, peer: Peer, message: &Message<'_>) {
        for place in &mut self.known {
            let Some(known) = place.as_mut().filter(|known| known.peer == peer) else {
                continue;
            };
            match message.kind {
                Kind::Ack if known.last == message.id => known.unanswered = 0,
                Kind::Reset => *place = None,
                _ => {}
            }
        }
    }

    /// The resource has changed.
    pub fn changed(&mut self) {
        self.sequence = (self.sequence + 1) & SEQUENCE_MASK;
        for known in self.known.iter_mut().flatten() {
            known.due = true;
        }
    }

    /// Writes the next notification, with the resource's present content in plain text, and returns to whom and how long.
    pub fn poll(&mut self, content: &[u8], buffer: &mut [u8]) -> Option<(Peer, usize)> {
        self.write(content, None, buffer)
    }

    /// As [`poll`](Self::poll), with no more than the first 2^(szx + 4) octets of a longer content. Observers ask for the rest (RFC 7959
    /// 2.6), which [`content`](super::content) answers.
    pub fn poll_block(
        &mut self,
        content: &[u8],
        szx: u8,
        buffer: &mut [u8],
    ) -> Option<(Peer, usize)> {
        let block = Block {
            number: 0,
            more: true,
            szx: szx.min(6),
        };
        match content.get(..block.size()) {
            Some(first) if first.len() < content.len() => self.write(first, Some(block), buffer),
            _ => self.write(content, None, buffer),
        }
    }

    fn write(
        &mut self,
        content: &[u8],
        block: Option<Block>,
        buffer: &mut [u8],
    ) -> Option<(Peer, usize)> {
        for place in &mut self.known {
            let Some(known) = place.as_mut().filter(|known| known.due) else {
                continue;
            };
            known.due = false;
            let confirm = known.plain == 0;
            if confirm && known.unanswered >= UNANSWERED_MAX {
                *place = None;
                continue;
            }
            self.id = self.id.wrapping_add(1);
            known.plain = (known.plain + 1) % CONFIRM_EVERY;
            known.last = self.id;
            let kind = match confirm {
                true => {
                    known.unanswered += 1;
                    Kind::Confirmable
                }
                false => Kind::NonConfirmable,
            };
            let peer = known.peer;
            let mut writer = Writer::new(buffer, kind, Code::CONTENT, self.id, known.token)?;
            writer.number(option::OBSERVE, self.sequence)?;
            writer.number(option::CONTENT_FORMAT, 0)?;
            if let Some(block) = block {
                writer.block(option::BLOCK2, block)?;
            }
            writer.payload(content)?;
            return Some((peer, writer.len()));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: Peer = (Ipv6Addr::LOCALHOST, 9);

    fn with<T>(kind: Kind, id: u16, observe: Option<u32>, f: impl FnOnce(&Message<'_>) -> T) -> T {
        let mut buffer = [0; 32];
        let code = if observe.is_some() {
            Code::GET
        } else {
            Code::EMPTY
        };
        let token = observe.map_or(Token::default(), |_| Token::new(7));
        let mut writer = Writer::new(&mut buffer, kind, code, id, token).unwrap();
        if let Some(value) = observe {
            writer.number(option::OBSERVE, value).unwrap();
        }
        let len = writer.len();
        f(&Message::parse(&buffer[..len]).unwrap())
    }

    fn notify(observers: &mut Observers<2>) -> Option<(Kind, u16, u32)> {
        observers.changed();
        let mut buffer = [0; 64];
        let (peer, len) = observers.poll(b"21.5", &mut buffer)?;
        assert_eq!(peer, PEER);
        let message = Message::parse(&buffer[..len]).unwrap();
        assert_eq!(
            (message.code, message.payload),
            (Code::CONTENT, &b"21.5"[..])
        );
        let (_, value) = message
            .options()
            .find(|(n, _)| *n == option::OBSERVE)
            .unwrap();
        let sequence = value
            .iter()
            .fold(0, |all, &octet| all << 8 | u32::from(octet));
        Some((message.kind, message.id, sequence))
    }

    #[test]
    fn changes_are_told_in_order_and_every_eighth_is_confirmable() {
        let mut observers: Observers<2> = Observers::new(0);
        assert_eq!(notify(&mut observers), None);
        let first = with(Kind::Confirmable, 1, Some(0), |message| {
            observers.request(PEER, message)
        });
        assert_eq!(first, Some(1));
        for number in 0..20 {
            let (kind, id, sequence) = notify(&mut observers).unwrap();
            assert_eq!(kind == Kind::Confirmable, number % 8 == 0, "{number}");
            assert_eq!(sequence, number + 2);
            with(Kind::Ack, id, None, |message| {
                observers.answer(PEER, message)
            });
        }
    }

    #[test]
    fn who_ends_it_resets_or_is_silent_is_forgotten() {
        let mut observers: Observers<2> = Observers::new(0);
        let register = |observers: &mut Observers<2>, value| {
            with(Kind::Confirmable, 1, Some(value), |message| {
                observers.request(PEER, message)
            })
        };
        register(&mut observers, 0);
        register(&mut observers, 0);
        assert_eq!(observers.len(), 1, "the same observer again");
        assert_eq!(register(&mut observers, 1), None);
        assert!(observers.is_empty());
        register(&mut observers, 0);
        with(Kind::Reset, 77, None, |message| {
            observers.answer(PEER, message)
        });
        assert!(observers.is_empty());
        register(&mut observers, 0);
        let told = (0..40).map_while(|_| notify(&mut observers)).count();
        assert_eq!(told, 16, "two confirmable ones without an answer");
        assert!(observers.is_empty());
    }

    #[test]
    fn a_third_observer_is_answered_without_being_kept() {
        let mut observers: Observers<2> = Observers::new(0);
        let places = [1, 2, 3].map(|port| {
            let peer = (Ipv6Addr::LOCALHOST, port);
            with(Kind::Confirmable, 1, Some(0), |message| {
                observers.request(peer, message)
            })
        });
        assert_eq!(places, [Some(0), Some(0), None]);
    }
}
