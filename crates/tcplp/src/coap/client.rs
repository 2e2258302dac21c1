//! The client: posts a body to a server or gets one, block by block, one message at a time.

use chappe_core::{Duration, Instant, Stream, Wake};

use super::message::{Block, Code, Kind, Message, Token, Writer, option};
use super::server::Received;
use super::timeout::Timeout;

/// Parameters of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether messages are confirmable. If not, each block is sent once and no answer is awaited.
    pub confirmable: bool,
    /// Size exponent of blocks: 2^(szx + 4) octets. 5 is 512 octets, the power of two closest to TCPlp's segments.
    pub szx: u8,
    /// MAX_RETRANSMIT (RFC 7252, 4.8): 4.
    pub max_retransmit: u8,
    /// The path of the requests: one segment, without slashes.
    pub path: &'static str,
}

impl Config {
    /// RFC 7252's defaults, blocks of 512 octets.
    pub const STANDARD: Config = Config {
        confirmable: true,
        szx: 5,
        max_retransmit: 4,
        path: "r",
    };
}

/// How an exchange ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Every block was acknowledged, or sent if they are non-confirmable.
    Done,
    /// A block was not acknowledged after MAX_RETRANSMIT retransmissions.
    GaveUp,
    /// The server refused it with this code, or with a reset.
    Refused(Code),
}

/// A client with at most one exchange (NSTART = 1).
#[derive(Clone, Debug)]
pub struct Client<T> {
    config: Config,
    timeout: T,
    random: Stream,
    id: u16,
    token: u32,
    exchange: Option<Exchange>,
    outcome: Option<Outcome>,
    counters: Counters,
}

/// Counters of a client. They wrap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Messages sent, retransmissions included.
    pub sent: u32,
    /// Retransmissions of confirmable messages.
    pub retransmitted: u32,
    /// Blocks that the server acknowledged.
    pub confirmed: u32,
}

#[derive(Clone, Copy, Debug)]
struct Exchange {
    what: What,
    /// The present block, and its size exponent.
    number: u32,
    szx: u8,
    id: u16,
    retransmissions: u8,
    first_sent: Instant,
    first_timeout: Duration,
    timeout: Duration,
    deadline: Option<Instant>,
}

/// What an exchange is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// To post a body of this many octets.
    Post(usize),
    /// To get a body of unknown length.
    Get,
}

impl Exchange {
    /// Where the present block begins in the body.
    fn start(&self) -> usize {
        (self.number as usize).saturating_mul(1 << (self.szx + 4))
    }
}

impl<T: Timeout> Client<T> {
    /// A client at rest. `random` is its own stream.
    pub fn new(config: Config, timeout: T, mut random: Stream) -> Client<T> {
        Client {
            config: Config {
                szx: config.szx.min(6),
                ..config
            },
            timeout,
            id: random.next_u64() as u16,
            token: random.next_u64() as u32,
            random,
            exchange: None,
            outcome: None,
            counters: Counters::default(),
        }
    }

    /// Begins to post a body of `len` octets, which [`poll`](Self::poll) reads block by block. False if an exchange is under
    /// way.
    pub fn post(&mut self, len: usize) -> bool {
        self.begin(What::Post(len))
    }

    /// Begins to get the server's content, block by block; [`handle`](Self::handle) returns it. Requests are confirmable
    /// whatever [`Config`] says. False if an exchange is under way.
    pub fn get(&mut self) -> bool {
        self.begin(What::Get)
    }

    fn begin(&mut self, what: What) -> bool {
        if self.exchange.is_some() {
            return false;
        }
        self.token = self.token.wrapping_add(1);
        self.outcome = None;
        self.exchange = Some(Exchange {
            what,
            number: 0,
            szx: self.config.szx,
            id: self.next_id(),
            retransmissions: 0,
            first_sent: Instant::ZERO,
            first_timeout: Duration::ZERO,
            timeout: Duration::ZERO,
            deadline: None,
        });
        true
    }

    fn next_id(&mut self) -> u16 {
        self.id = self.id.wrapping_add(1);
        self.id
    }

    /// Whether an exchange is under way.
    pub fn is_busy(&self) -> bool {
        self.exchange.is_some()
    }

    /// How the last exchange ended; returned once.
    pub fn outcome(&mut self) -> Option<Outcome> {
        self.outcome.take()
    }

    /// Messages sent, retransmitted and confirmed so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Whether the server owes an answer.
    pub fn awaits_answer(&self) -> bool {
        self.exchange
            .is_some_and(|exchange| exchange.deadline.is_some())
    }

    /// Writes the next message to the front of `message` and returns its length. `body` copies a part of the body, from a
    /// position on, to a buffer, and returns whether it could.
    pub fn poll(
        &mut self,
        now: Instant,
        body: impl FnOnce(usize, &mut [u8]) -> bool,
        message: &mut [u8],
    ) -> Option<usize> {
        let mut exchange = self.exchange?;
        if exchange.deadline.is_some() {
            return None;
        }
        let mut payload = [0; 1024];
        let (code, payload, more) = match exchange.what {
            What::Get => (Code::GET, &[][..], false),
            What::Post(len) => {
                let start = exchange.start();
                let part = len.saturating_sub(start).min(1 << (exchange.szx + 4));
                let payload = payload.get_mut(..part)?;
                if !body(start, payload) {
                    return None;
                }
                (Code::POST, &*payload, start + part < len)
            }
        };
        let confirmable = self.config.confirmable || exchange.what == What::Get;
        let kind = match confirmable {
            true => Kind::Confirmable,
            false => Kind::NonConfirmable,
        };
        let token = Token::new(self.token);
        let mut writer = Writer::new(message, kind, code, exchange.id, token)?;
        writer.option(option::URI_PATH, self.config.path.as_bytes())?;
        let block = Block {
            number: exchange.number,
            more,
            szx: exchange.szx,
        };
        match exchange.what {
            // The first request names the size that later ones keep (RFC 7959, 2.4).
            What::Get => writer.block(option::BLOCK2, block)?,
            What::Post(_) if more || exchange.number > 0 => writer.block(option::BLOCK1, block)?,
            What::Post(_) => {}
        }
        writer.payload(payload)?;
        let len = writer.len();
        self.counters.sent = self.counters.sent.wrapping_add(1);
        //= tcplp 8.2.4: unreliable: non-confirmable messages, sent once
        if !confirmable {
            self.advance(more);
            return Some(len);
        }
        if exchange.retransmissions == 0 {
            exchange.first_sent = now;
            exchange.timeout = self.timeout.first(now, &mut self.random);
            exchange.first_timeout = exchange.timeout;
        } else {
            self.counters.retransmitted = self.counters.retransmitted.wrapping_add(1);
            exchange.timeout = self.timeout.next(exchange.timeout, exchange.first_timeout);
        }
        exchange.deadline = Some(now + exchange.timeout);
        self.exchange = Some(exchange);
        Some(len)
    }

    /// The present block is finished: moves to the next, or ends the exchange.
    fn advance(&mut self, more: bool) {
        if !more {
            self.exchange = None;
            self.outcome = Some(Outcome::Done);
            return;
        }
        let id = self.next_id();
        if let Some(exchange) = &mut self.exchange {
            exchange.number += 1;
            exchange.id = id;
            exchange.retransmissions = 0;
            exchange.deadline = None;
        }
    }

    /// Processes a datagram of the server. Returns the next part of the content requested, each part once and in order.
    pub fn handle<'b>(&mut self, now: Instant, bytes: &'b [u8]) -> Option<Received<'b>> {
        let exchange = self.exchange?;
        let message = Message::parse(bytes).ok()?;
        // RFC 7252, 4.4: ACK and RST match by message ID. What is not awaited is a duplicate.
        if message.id != exchange.id || exchange.deadline.is_none() {
            return None;
        }
        match message.kind {
            Kind::Reset => self.end(Outcome::Refused(Code::EMPTY)),
            Kind::Ack if message.token == Token::new(self.token) => {
                let rtt = now.saturating_since(exchange.first_sent);
                self.timeout.confirmed(now, rtt, exchange.retransmissions);
                self.counters.confirmed = self.counters.confirmed.wrapping_add(1);
                if !message.code.is_success() {
                    self.end(Outcome::Refused(message.code));
                } else if let What::Post(len) = exchange.what {
                    self.advance(exchange.start() + (1 << (exchange.szx + 4)) < len);
                } else {
                    return self.take(&exchange, &message);
                }
            }
            _ => {}
        }
        None
    }

    /// The requested block; the server may have chosen a smaller size (RFC 7959, 2.4).
    fn take<'b>(&mut self, exchange: &Exchange, message: &Message<'b>) -> Option<Received<'b>> {
        let block = message.block2().unwrap_or(Block {
            number: 0,
            more: false,
            szx: exchange.szx,
        });
        let start = (block.number as usize).saturating_mul(block.size());
        if block.szx > exchange.szx || start != exchange.start() {
            self.end(Outcome::Refused(Code::INCOMPLETE));
            return None;
        }
        if let Some(exchange) = &mut self.exchange {
            (exchange.number, exchange.szx) = (block.number, block.szx);
        }
        self.advance(block.more);
        Some(Received {
            payload: message.payload,
            start,
            last: !block.more,
        })
    }

    fn end(&mut self, outcome: Outcome) {
        self.exchange = None;
        self.outcome = Some(outcome);
    }

    /// The deadline may have expired: the message is retransmitted or given up (RFC 7252, 4.2).
    pub fn handle_timeout(&mut self, now: Instant) {
        let Some(exchange) = &mut self.exchange else {
            return;
        };
        if exchange.deadline.take_if(|at| *at <= now).is_none() {
            return;
        }
        if exchange.retransmissions >= self.config.max_retransmit {
            return self.end(Outcome::GaveUp);
        }
        exchange.retransmissions += 1;
    }

    /// When the present message is to be retransmitted.
    pub fn poll_timeout(&self) -> Option<Wake> {
        let at = self.exchange?.deadline?;
        Some(Wake {
            at,
            why: "no answer to a confirmable message",
        })
    }
}
