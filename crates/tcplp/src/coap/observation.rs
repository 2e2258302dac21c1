//! Observing a resource (RFC 7641): the client.
//!
//! ```text
//! client                                         server
//!   CON GET /r  observe 0, token 7       ------->
//!   <-------  ACK 2.05  observe 12               the state now
//!   <-------  CON 2.05  observe 13, token 7      a change
//!   ACK                                  ------->
//!   <-------  NON 2.05  observe 14, block2 0     a change too large for a message
//!   CON GET /r  block2 1, token 8        ------->
//!   <-------  ACK 2.05  block2 1                 the rest
//! ```
//!
//! A change that the server tells later than a newer one is dropped (RFC 7641 3.4). When the last state has become old (Max-Age), the
//! client registers again: the server may have forgotten it (3.3.1).

use chappe_core::{Duration, Instant, Stream, Wake};

use super::client::Outcome;
use super::message::{Block, Code, Kind, Message, Token, Writer, option};
use super::timeout::Timeout;

/// MAX_RETRANSMIT (RFC 7252 4.8).
const RETRANSMISSIONS_MAX: u8 = 4;
/// How long to wait for a response of its own after an empty acknowledgement: EXCHANGE_LIFETIME (RFC 7252 4.8.2).
const SEPARATE: Duration = Duration::from_secs(247);
/// Max-Age of a message without the option (RFC 7252 5.10.5).
const MAX_AGE: u32 = 60;
/// A client waits 5 to 15 s after Max-Age before it registers again (RFC 7641 3.3.1).
const GRACE: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(10));
/// After this time any number counts as newer (RFC 7641 3.4).
const ORDER_LIFE: Duration = Duration::from_secs(128);
/// Half of the 24-bit numbers.
const HALF: u32 = 1 << 23;
/// Octets of an ETag (RFC 7252 5.10.6).
const ETAG_MAX: usize = 8;

/// A state of the resource, or a part of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Notification<'a> {
    /// The content from position `start` on. A part at 0 begins a newer state; what came of an older one is void.
    pub payload: &'a [u8],
    /// The position of the part in the content.
    pub start: usize,
    /// Whether the content ends with this part.
    pub last: bool,
    /// Whether the server told it unasked; `false`: it answers a registration, or the request of a block.
    pub unasked: bool,
}

/// The observation of one resource of one server.
///
/// [`poll`](Self::poll) gives the messages to send, [`handle`](Self::handle) takes those of the server. It takes nothing from others: the
/// caller compares the sender's address and port, or connects its socket.
#[derive(Clone, Debug)]
pub struct Observation<T> {
    path: &'static str,
    timeout: T,
    random: Stream,
    id: u16,
    token: u32,
    /// The token of the registration, which stays the same; `None`: the resource is not observed.
    registered: Option<Token>,
    exchange: Option<Exchange>,
    /// An acknowledgement or reset to send.
    reply: Option<(Kind, u16)>,
    /// Number and time of the last change told.
    last: Option<(u32, Instant)>,
    refresh_at: Option<Instant>,
    /// The ETag of the content whose blocks are asked for.
    etag: Etag,
    outcome: Option<Outcome>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Etag {
    octets: [u8; ETAG_MAX],
    len: usize,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    what: What,
    id: u16,
    token: Token,
    retransmissions: u8,
    first_sent: Instant,
    first_timeout: Duration,
    timeout: Duration,
    /// `None`: the request is to be sent.
    deadline: Option<Instant>,
    /// The server has acknowledged the request and will respond later.
    acknowledged: bool,
}

/// What a request is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Register,
    Cancel,
    Block(Block),
}

impl<T: Timeout> Observation<T> {
    /// An observation of `path`, whose segments slashes separate. It begins with [`register`](Self::register). `random` is its own stream.
    pub fn new(path: &'static str, timeout: T, mut random: Stream) -> Observation<T> {
        Observation {
            path,
            timeout,
            id: random.next_u64() as u16,
            token: random.next_u64() as u32,
            random,
            registered: None,
            exchange: None,
            reply: None,
            last: None,
            refresh_at: None,
            etag: Etag::default(),
            outcome: None,
        }
    }

    /// Asks the server to tell the state now and each change, whatever was under way.
    pub fn register(&mut self) {
        let token = match self.registered {
            Some(token) => token,
            None => self.next_token(),
        };
        self.registered = Some(token);
        self.outcome = None;
        self.begin(What::Register, token);
    }

    /// Asks the server to tell nothing more (RFC 7641 3.6). [`outcome`](Self::outcome) says when that is settled.
    pub fn cancel(&mut self) {
        if let Some(token) = self.registered {
            self.begin(What::Cancel, token);
        }
    }

    /// Whether the resource is observed, or is to be.
    pub fn is_active(&self) -> bool {
        self.registered.is_some()
    }

    /// Why the observation ended; returned once. `Done`: it was cancelled.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Whether the server owes an answer. A sleepy radio should poll its parent more often meanwhile.
    pub fn awaits_answer(&self) -> bool {
        self.exchange
            .is_some_and(|exchange| exchange.deadline.is_some())
    }

    fn next_token(&mut self) -> Token {
        self.token = self.token.wrapping_add(1);
        Token::new(self.token)
    }

    fn begin(&mut self, what: What, token: Token) {
        self.id = self.id.wrapping_add(1);
        self.refresh_at = None;
        self.exchange = Some(Exchange {
            what,
            id: self.id,
            token,
            retransmissions: 0,
            first_sent: Instant::ZERO,
            first_timeout: Duration::ZERO,
            timeout: Duration::ZERO,
            deadline: None,
            acknowledged: false,
        });
    }

    fn end(&mut self, outcome: Outcome) {
        (self.registered, self.exchange, self.refresh_at) = (None, None, None);
        self.last = None;
        self.outcome = Some(outcome);
    }

    /// Writes the next message to the front of `message` and returns its length. Call it until it returns `None`, after each call of
    /// the others.
    pub fn poll(&mut self, now: Instant, message: &mut [u8]) -> Option<usize> {
        if let Some((kind, id)) = self.reply.take() {
            let writer = Writer::new(message, kind, Code::EMPTY, id, Token::default())?;
            return Some(writer.len());
        }
        let mut exchange = self
            .exchange
            .filter(|exchange| exchange.deadline.is_none())?;
        let (kind, code) = (Kind::Confirmable, Code::GET);
        let mut writer = Writer::new(message, kind, code, exchange.id, exchange.token)?;
        match exchange.what {
            What::Register => writer.number(option::OBSERVE, 0)?,
            What::Cancel => writer.number(option::OBSERVE, 1)?,
            What::Block(_) => {}
        }
        for part in self.path.split('/') {
            writer.option(option::URI_PATH, part.as_bytes())?;
        }
        if let What::Block(block) = exchange.what {
            writer.block(option::BLOCK2, block)?;
        }
        let len = writer.len();
        if exchange.retransmissions == 0 {
            exchange.first_sent = now;
            exchange.first_timeout = self.timeout.first(now, &mut self.random);
            exchange.timeout = exchange.first_timeout;
            if exchange.what == What::Register {
                // The server may have started anew, with lower numbers.
                self.last = None;
            }
        } else {
            exchange.timeout = self.timeout.next(exchange.timeout, exchange.first_timeout);
        }
        exchange.deadline = Some(now + exchange.timeout);
        self.exchange = Some(exchange);
        Some(len)
    }

    /// Processes a datagram of the server. Returns the state, or the part of it, that the datagram carries.
    pub fn handle<'b>(&mut self, now: Instant, bytes: &'b [u8]) -> Option<Notification<'b>> {
        let message = Message::parse(bytes).ok()?;
        let waiting = self.exchange.filter(|exchange| exchange.deadline.is_some());
        match message.kind {
            Kind::Ack | Kind::Reset => {
                let exchange = waiting.filter(|exchange| exchange.id == message.id)?;
                self.answered(now, exchange, &message)
            }
            Kind::Confirmable | Kind::NonConfirmable => {
                let of = |exchange: &Exchange| exchange.token == message.token;
                let awaited = waiting.filter(of);
                let is_response = message.code.is_response();
                let ours = awaited.is_some() || self.registered == Some(message.token);
                // RFC 7252 4.2, 4.3; RFC 7641 3.6: a rejected notification ends the registration at the server.
                match (is_response && ours, message.kind) {
                    (false, _) => self.reply = Some((Kind::Reset, message.id)),
                    (true, Kind::Confirmable) => self.reply = Some((Kind::Ack, message.id)),
                    (true, _) => {}
                }
                match awaited {
                    _ if !(is_response && ours) => None,
                    // A separate response. A change may be told first, before the answer to a second registration.
                    Some(exchange)
                        if exchange.acknowledged || matches!(exchange.what, What::Block(_)) =>
                    {
                        self.respond(now, exchange, &message)
                    }
                    _ => self.told(now, &message, true),
                }
            }
        }
    }

    /// An acknowledgement or reset of the request under way.
    fn answered<'b>(
        &mut self,
        now: Instant,
        exchange: Exchange,
        message: &Message<'b>,
    ) -> Option<Notification<'b>> {
        if message.kind == Kind::Reset {
            self.end(Outcome::Refused(Code::EMPTY));
            return None;
        }
        let rtt = now.saturating_since(exchange.first_sent);
        if message.code == Code::EMPTY && !exchange.acknowledged {
            self.timeout.confirmed(now, rtt, exchange.retransmissions);
            self.exchange = Some(Exchange {
                acknowledged: true,
                deadline: Some(now + SEPARATE),
                ..exchange
            });
            return None;
        }
        if message.token != exchange.token || !message.code.is_response() {
            return None;
        }
        self.timeout.confirmed(now, rtt, exchange.retransmissions);
        self.respond(now, exchange, message)
    }

    /// The response to a request.
    fn respond<'b>(
        &mut self,
        now: Instant,
        exchange: Exchange,
        message: &Message<'b>,
    ) -> Option<Notification<'b>> {
        self.exchange = None;
        match exchange.what {
            What::Register => self.told(now, message, false),
            What::Cancel => {
                self.end(Outcome::Done);
                None
            }
            What::Block(asked) => self.take_block(asked, message),
        }
    }

    /// A state of the resource, or its first block.
    fn told<'b>(
        &mut self,
        now: Instant,
        message: &Message<'b>,
        unasked: bool,
    ) -> Option<Notification<'b>> {
        if !message.code.is_success() {
            // RFC 7641 3.2: the server has ended the registration.
            self.end(Outcome::Refused(message.code));
            return None;
        }
        let block = message.block2();
        let first = block.is_none_or(|block| block.number == 0);
        if message.unknown_critical() || !first || self.cancelling() {
            return None;
        }
        if let Some(number) = number(message, option::OBSERVE) {
            if !self.is_newer(now, number) {
                return None;
            }
            self.last = Some((number, now));
        }
        let max_age = number(message, option::MAX_AGE).unwrap_or(MAX_AGE);
        let grace = GRACE.0 + Duration::from_nanos(self.random.below(GRACE.1.nanos()));
        self.etag = etag(message);
        match block.filter(|block| block.more) {
            Some(block) => self.ask_for(block, 1),
            // The blocks of an older state are of no use any more.
            None if self.asks_for_block() => self.exchange = None,
            None => {}
        }
        self.refresh_at = Some(now + Duration::from_secs(max_age.into()) + grace);
        Some(Notification {
            payload: message.payload,
            start: 0,
            last: !block.is_some_and(|block| block.more),
            unasked,
        })
    }

    /// A further block (RFC 7959 2.4). If the content has changed meanwhile, its parts do not fit: the server tells of the change.
    fn take_block<'b>(&mut self, asked: Block, message: &Message<'b>) -> Option<Notification<'b>> {
        let block = message.block2()?;
        let start = (block.number as usize).checked_mul(block.size())?;
        let expected = (asked.number as usize).checked_mul(asked.size())?;
        let fits = block.szx <= asked.szx && start == expected && etag(message) == self.etag;
        let whole = !block.more || message.payload.len() == block.size();
        if !message.code.is_success() || !fits || !whole || message.unknown_critical() {
            return None;
        }
        if block.more {
            self.ask_for(block, block.number.saturating_add(1));
        }
        Some(Notification {
            payload: message.payload,
            start,
            last: !block.more,
            unasked: false,
        })
    }

    fn ask_for(&mut self, like: Block, number: u32) {
        let refresh_at = self.refresh_at;
        let token = self.next_token();
        self.begin(
            What::Block(Block {
                number,
                more: false,
                ..like
            }),
            token,
        );
        self.refresh_at = refresh_at;
    }

    fn cancelling(&self) -> bool {
        self.exchange
            .is_some_and(|exchange| exchange.what == What::Cancel)
    }

    fn asks_for_block(&self) -> bool {
        self.exchange
            .is_some_and(|exchange| matches!(exchange.what, What::Block(_)))
    }

    /// RFC 7641 3.4: numbers of 24 bits that wrap; after 128 s the order of arrival counts.
    fn is_newer(&self, now: Instant, number: u32) -> bool {
        let Some((last, at)) = self.last else {
            return true;
        };
        let ahead =
            (last < number && number - last < HALF) || (last > number && last - number > HALF);
        ahead || now.saturating_since(at) > ORDER_LIFE
    }

    /// The deadline of [`poll_timeout`](Self::poll_timeout) may have expired: a request is repeated or given up (RFC 7252 4.2), or the
    /// client registers again.
    pub fn handle_timeout(&mut self, now: Instant) {
        if self.exchange.is_none() && self.refresh_at.take_if(|at| *at <= now).is_some() {
            return self.register();
        }
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if exchange.deadline.take_if(|at| *at <= now).is_none() {
            return;
        }
        if !exchange.acknowledged && exchange.retransmissions < RETRANSMISSIONS_MAX {
            exchange.retransmissions += 1;
            return;
        }
        match exchange.what {
            What::Register => self.end(Outcome::GaveUp),
            // A reset will answer what the server still tells.
            What::Cancel => self.end(Outcome::Done),
            What::Block(_) => self.exchange = None,
        }
    }

    /// When a request is to be repeated, or the registration renewed.
    pub fn poll_timeout(&self) -> Option<Wake> {
        match self.exchange {
            Some(exchange) => Some(Wake {
                at: exchange.deadline?,
                why: "no answer to a confirmable message",
            }),
            None => Some(Wake {
                at: self.refresh_at?,
                why: "observed state is old",
            }),
        }
    }
}

/// The value of an option that is a number of at most four octets.
fn number(message: &Message<'_>, wanted: u16) -> Option<u32> {
    let (_, value) = message.options().find(|(number, _)| *number == wanted)?;
    let fits = value.len() <= 4;
    fits.then(|| {
        value
            .iter()
            .fold(0, |all, &octet| all << 8 | u32::from(octet))
    })
}

fn etag(message: &Message<'_>) -> Etag {
    let mut etag = Etag::default();
    let found = message
        .options()
        .find(|(number, _)| *number == option::ETAG);
    if let Some((_, value)) = found
        && let Some(room) = etag.octets.get_mut(..value.len())
    {
        room.copy_from_slice(value);
        etag.len = value.len();
    }
    etag
}

#[cfg(test)]
mod tests;
