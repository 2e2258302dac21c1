//! Handshakes between two neighbours: Noise KK with a pre-shared key, by the crate `snow`.
//!
//! Both know the other's public key from the list of members, and both prove that they have the secret one. The keys of the
//! session also depend on keys that both make for this handshake and forget, so a secret key that is stolen later opens no
//! recorded frame (forward secrecy). The group's key is mixed in, so a member of a former list, whose key was
//! renewed, cannot complete it.
//!
//! ```text
//!  0       1            5
//!  +-------+------------+---------------------------------------------+
//!  | which | number (4) | message: e, es, ss / e, ee, se; epoch (8)   |
//!  +-------+------------+---------------------------------------------+
//! ```
//!
//! `which` is 1 for the first message and 2 for the answer, and the number ties the answer to the first one.

use chappe_session::Primitives;
use snow::{Builder, HandshakeState};

use crate::membership::Membership;
use crate::seal::Pair;

const PATTERN: &str = "Noise_KKpsk0_25519_ChaChaPoly_SHA256";
/// Octets of a message: a public key, and an epoch with its tag.
const MESSAGE: usize = 32 + 8 + 16;
/// Octets of the body of a frame.
pub const BODY: usize = 1 + 4 + MESSAGE;

/// A message of a handshake.
pub struct Message<'a> {
    /// Whether it is the answer.
    pub answers: bool,
    /// The number of the handshake, which its initiator chose.
    pub number: u32,
    noise: &'a [u8; MESSAGE],
}

impl Message<'_> {
    /// Reads the body of a frame.
    pub fn parse(body: &[u8]) -> Option<Message<'_>> {
        let (&which, rest) = body.split_first()?;
        let (number, rest) = rest.split_first_chunk()?;
        Some(Message {
            answers: match which {
                1 => false,
                2 => true,
                _ => return None,
            },
            number: u32::from_be_bytes(*number),
            noise: rest.try_into().ok()?,
        })
    }
}

/// A handshake that this node has begun.
pub struct Begun {
    state: HandshakeState,
    /// The number of the handshake.
    pub number: u32,
    /// The body of the first message, for repeating it.
    pub first: [u8; BODY],
}

fn builder<'a>(
    membership: &'a Membership,
    with: u16,
    mixed: &'a [u8; 32],
    prologue: &'a [u8],
) -> Option<Builder<'a>> {
    let theirs = membership.members.get(&with)?;
    let primitives = Box::new(Primitives::new(chappe_sys::random_key().ok()?));
    let built = Builder::with_resolver(PATTERN.parse().ok()?, primitives)
        .local_private_key(membership.secret.octets())
        .and_then(|builder| builder.remote_public_key(theirs))
        .and_then(|builder| builder.psk(0, mixed))
        .and_then(|builder| builder.prologue(prologue));
    built.ok()
}

/// What both must agree on: the version, the list of members, and who begins with whom.
fn prologue(serial: u32, from: u16, to: u16) -> Vec<u8> {
    let numbers = [from.to_be_bytes(), to.to_be_bytes()].concat();
    [&b"chappe live 3"[..], &serial.to_be_bytes(), &numbers].concat()
}

fn body(which: u8, number: u32, noise: &[u8; MESSAGE]) -> [u8; BODY] {
    let mut body = [which; BODY];
    body[1..5].copy_from_slice(&number.to_be_bytes());
    body[5..].copy_from_slice(noise);
    body
}

impl Begun {
    /// Begins a handshake of node `me` in its life `epoch` with node `with`; `None` if that is no member or the kernel has no
    /// random octets.
    pub fn new(
        membership: &Membership,
        (me, epoch): (u16, u64),
        with: u16,
        number: u32,
    ) -> Option<Begun> {
        let prologue = prologue(membership.serial, me, with);
        let mixed = membership.key.mixed();
        let builder = builder(membership, with, &mixed, &prologue)?;
        let mut state = builder.build_initiator().ok()?;
        let mut noise = [0; MESSAGE];
        let len = state.write_message(&epoch.to_be_bytes(), &mut noise).ok()?;
        (len == MESSAGE).then_some(Begun {
            state,
            number,
            first: body(1, number, &noise),
        })
    }

    /// Takes the answer; returns the keys and the other's life. `None` if it does not fit this handshake; the right answer may
    /// still come.
    pub fn finish(&mut self, message: &Message<'_>) -> Option<(Pair, u64)> {
        if !message.answers || message.number != self.number {
            return None;
        }
        let mut epoch = [0; MESSAGE];
        let len = self.state.read_message(message.noise, &mut epoch).ok()?;
        let epoch = u64::from_be_bytes(epoch.get(..len)?.try_into().ok()?);
        let (ours, theirs) = self.state.dangerously_get_raw_split();
        Some((Pair::new(&ours, &theirs), epoch))
    }
}

/// Answers the first message of node `with`. Returns the body of the answer, the keys, and the other's life; `None` if the
/// message is not authentic. It may be a recording: only a frame under these keys shows that the other is there.
pub fn answer(
    membership: &Membership,
    (me, epoch): (u16, u64),
    with: u16,
    message: &Message<'_>,
) -> Option<([u8; BODY], Pair, u64)> {
    let prologue = prologue(membership.serial, with, me);
    let mixed = membership.key.mixed();
    let mut state = builder(membership, with, &mixed, &prologue)?
        .build_responder()
        .ok()?;
    let mut theirs = [0; MESSAGE];
    let len = state.read_message(message.noise, &mut theirs).ok()?;
    let life = u64::from_be_bytes(theirs.get(..len)?.try_into().ok()?);
    let mut noise = [0; MESSAGE];
    state.write_message(&epoch.to_be_bytes(), &mut noise).ok()?;
    let (from_initiator, to_initiator) = state.dangerously_get_raw_split();
    let pair = Pair::new(&to_initiator, &from_initiator);
    Some((body(2, message.number, &noise), pair, life))
}

impl std::fmt::Debug for Begun {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Begun({})", self.number)
    }
}
