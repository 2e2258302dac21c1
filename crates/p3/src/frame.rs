//! How a node of one variant reads and writes frames: which header, and where the tag is.

use crate::config::{Config, HEADER_LEN, Variant};
use crate::header::{Ctrl, Header, Kind, LEAN_LEN, Malformed, NACK_FIELDS, Nack, is_lean};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::{Nonce, Seal};

/// Octets at which a node looks while a frame still arrives: kind, transfer, hop, flags.
pub(crate) const HEAD_LEN: usize = 4;

/// The form of a node's frames.
#[derive(Clone, Debug)]
pub(crate) struct Form {
    lean: bool,
    seal: Seal,
}

impl Form {
    pub fn new(config: &Config) -> Form {
        Form {
            lean: config.variant == Variant::Improved,
            seal: Seal::new(config.key.as_ref()),
        }
    }

    /// Whether it is the improved variant.
    pub fn is_lean(&self) -> bool {
        self.lean
    }

    /// Octets of a header.
    fn head(&self, kind: Kind) -> usize {
        match kind {
            Kind::Data | Kind::Coded if self.lean => LEAN_LEN,
            _ => HEADER_LEN,
        }
    }

    /// Octets of DATA, CODED and CTRL frames.
    pub fn data_len(&self, plan: &Plan) -> usize {
        self.head(Kind::Data) + plan.payload() + self.seal.tag_len()
    }

    /// Octets at the end of each frame.
    pub fn tag_len(&self) -> usize {
        self.seal.tag_len()
    }

    /// Octets of a frame with a body of that many.
    pub fn len_of(&self, kind: Kind, body: usize) -> usize {
        self.head(kind) + body + self.seal.tag_len()
    }

    /// Octets of the shortest NACK.
    pub fn nack_min(&self, plan: &Plan) -> usize {
        match self.lean {
            true => self.len_of(Kind::Nack, NACK_FIELDS),
            false => self.data_len(plan),
        }
    }

    /// What the first [`HEAD_LEN`] octets of a frame say: kind, transfer, hop and flags. Garbled ones say nothing.
    pub fn glance(&self, plan: &Plan, before: u8, octets: &[u8]) -> Option<Header> {
        if self.lean && is_lean(octets) {
            let (mut header, _) = Header::parse_lean(octets, plan.transfer(), before).ok()?;
            if header.transfer & 3 == plan.transfer() & 3 {
                header.transfer = plan.transfer();
            }
            return Some(header);
        }
        let mut whole = [0; HEADER_LEN];
        whole
            .get_mut(..HEAD_LEN)?
            .copy_from_slice(octets.get(..HEAD_LEN)?);
        Header::parse(&whole).ok().map(|(header, _)| header)
    }

    /// The header and body of a frame heard by a node that listens for hop `before` of this plan.
    pub fn parse<'a>(
        &self,
        plan: &Plan,
        before: u8,
        psdu: &'a [u8],
    ) -> Result<(Header, &'a [u8]), Malformed> {
        let message = psdu.len().checked_sub(self.seal.tag_len());
        let psdu = message.and_then(|len| psdu.get(..len)).ok_or(Malformed)?;
        let (header, body) = if self.lean && is_lean(psdu) {
            let transfer = plan.transfer();
            let (mut header, body) = Header::parse_lean(psdu, transfer, before)?;
            if header.transfer & 3 == transfer & 3 {
                header.transfer = transfer;
            }
            (header, body)
        } else {
            Header::parse(psdu)?
        };
        let data = matches!(header.kind, Kind::Data | Kind::Coded);
        if self.lean && data && !is_lean(psdu) || header.kind == Kind::Coded && !self.lean {
            return Err(Malformed);
        }
        Ok((header, body))
    }

    /// Begins a frame of `len` octets in `out` and returns its body, zeroed.
    pub fn begin<'a>(&self, out: &'a mut Outbox, header: &Header, len: usize) -> &'a mut [u8] {
        let frame = out.write(len);
        let body = match self.head(header.kind) {
            LEAN_LEN => header.emit_lean(frame),
            _ => header.emit(frame),
        };
        let body = body.unwrap_or_default();
        let end = body.len().saturating_sub(self.seal.tag_len());
        body.get_mut(..end).unwrap_or_default()
    }

    /// Seals the frame in `out`, which has been written whole.
    pub fn seal(&self, out: &mut Outbox, nonce: &Nonce) {
        let frame = out.frame_mut();
        let open = match nonce.kind {
            Kind::Data | Kind::Coded => self.head(nonce.kind),
            _ => frame.len().saturating_sub(self.seal.tag_len()),
        };
        // A frame has room for its tag by its making.
        let _ = self.seal.seal(nonce, open, frame);
    }

    /// Opens a DATA or CODED frame where it lies and returns its payload; `None` if its source did not send it.
    pub fn open<'a>(&self, nonce: &Nonce, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let open = self.head(nonce.kind);
        if !self.seal.open(nonce, open, frame) {
            return None;
        }
        frame.get(open..frame.len().checked_sub(self.seal.tag_len())?)
    }

    /// Whether a PLAN, CTRL or NACK frame is genuine.
    pub fn is_genuine(&self, nonce: &Nonce, psdu: &[u8]) -> bool {
        self.seal.verify(nonce, psdu)
    }
}

impl Nonce {
    pub fn of_plan(plan: &Plan) -> Nonce {
        Nonce {
            destination: plan.destination(),
            session: plan.session(),
            kind: Kind::Plan,
            number: 0,
            round: 0,
            extra: 0,
        }
    }

    pub fn of_data(plan: &Plan, packet: u32) -> Nonce {
        Nonce {
            kind: Kind::Data,
            number: packet,
            ..Nonce::of_plan(plan)
        }
    }

    /// A combination of packets of the segment that begins with `first`.
    pub fn of_coded(plan: &Plan, first: u32, round: u8, number: u8) -> Nonce {
        Nonce {
            kind: Kind::Coded,
            number: first,
            round,
            extra: number.into(),
            ..Nonce::of_plan(plan)
        }
    }

    pub fn of_ctrl(plan: &Plan, header: &Header, ctrl: &Ctrl) -> Nonce {
        Nonce {
            kind: Kind::Ctrl,
            number: ctrl.end,
            round: header.round,
            extra: u16::from(ctrl.copies_left) << 8 | u16::from(header.flags.bits()),
            ..Nonce::of_plan(plan)
        }
    }

    pub fn of_nack(plan: &Plan, header: &Header, nack: &Nack<'_>) -> Nonce {
        Nonce {
            kind: Kind::Nack,
            number: nack.base.into(),
            round: header.round,
            extra: nack.missing | u16::from(header.flags.both) << 15,
            ..Nonce::of_plan(plan)
        }
    }
}
