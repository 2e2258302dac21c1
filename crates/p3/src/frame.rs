//! How a node of one variant reads and writes frames: which header, and where the tag is.

use crate::blocks::{Tag, Tags};
use crate::config::{Config, Variant};
use crate::header::{Ctrl, Header, Kind, Malformed, NACK_FIELDS, Nack, is_short};
use crate::outbox::Outbox;
use crate::plan::Plan;
use crate::seal::{Nonce, Seal};
use crate::sizes::{CTRL_FIELDS, FRAME_MAX, HEAD_LEN, HEADER_LEN, SHORT_HEADER_LEN, TAG_LEN};

/// The layout of a node's frames, by variant.
#[derive(Clone, Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "the key schedule of AES; a node has one layout, and no allocator to box it with"
)]
pub(crate) enum Frames {
    /// Seven octets of header, no tag.
    Paper,
    /// Three octets of header in DATA and CODED frames, and a tag at the end of every frame.
    Improved(Seal),
}

impl Frames {
    pub fn new(config: &Config) -> Frames {
        match &config.variant {
            Variant::Paper => Frames::Paper,
            Variant::Improved(improved) => Frames::Improved(Seal::new(improved.key.as_ref())),
        }
    }

    /// Whether the plan is of this variant, has frames that are not too long, and does not ask for tags without a key.
    pub fn fit(&self, plan: &Plan) -> bool {
        let variant = match self {
            Frames::Paper => !plan.is_improved(),
            Frames::Improved(_) => plan.is_improved(),
        };
        let tagged = !plan.tags_segments() || self.tag_len() > 0;
        variant && tagged && self.data_len(plan) <= FRAME_MAX
    }

    /// Octets of the header of a frame of this kind.
    fn header_len(&self, kind: Kind) -> usize {
        match (self, kind) {
            (Frames::Improved(_), Kind::Data | Kind::Coded) => SHORT_HEADER_LEN,
            _ => HEADER_LEN,
        }
    }

    /// Octets of DATA, CODED and CTRL frames. A CTRL has the longer header in the improved variant, so its body is
    /// four octets shorter.
    pub fn data_len(&self, plan: &Plan) -> usize {
        self.header_len(Kind::Data) + plan.payload() + self.tag_of(plan, Kind::Data)
    }

    /// Octets of the tag at the end of a frame of this kind.
    fn tag_of(&self, plan: &Plan, kind: Kind) -> usize {
        match kind {
            Kind::Data | Kind::Coded if plan.tags_segments() => 0,
            _ => self.tag_len(),
        }
    }

    /// Octets of the tag at the end of each frame that has one.
    pub fn tag_len(&self) -> usize {
        match self {
            Frames::Paper => 0,
            Frames::Improved(seal) => seal.tag_len(),
        }
    }

    /// Octets of a frame with a body of `body` octets.
    pub fn len_of(&self, kind: Kind, body: usize) -> usize {
        self.header_len(kind) + body + self.tag_len()
    }

    /// Octets of the shortest NACK. The paper's are never shorter than DATA.
    pub fn nack_min(&self, plan: &Plan) -> usize {
        match self {
            Frames::Paper => self.data_len(plan),
            Frames::Improved(_) => self.len_of(Kind::Nack, NACK_FIELDS),
        }
    }

    /// Whether a frame of this variant begins with the short header.
    fn begins_short(&self, octets: &[u8]) -> bool {
        matches!(self, Frames::Improved(_)) && is_short(octets)
    }

    /// Kind, transfer, hop and flags from the first [`HEAD_LEN`] octets of a frame; `None` if they are garbled.
    pub fn glance(&self, plan: &Plan, before: u8, octets: &[u8]) -> Option<Header> {
        if self.begins_short(octets) {
            let header = Header::parse_short(octets, plan.transfer(), before);
            return header.ok().map(|(header, _)| header);
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
        let short = self.begins_short(psdu);
        let kind = if short { Kind::Data } else { Kind::Ctrl };
        let message = psdu.len().checked_sub(self.tag_of(plan, kind));
        let psdu = message.and_then(|len| psdu.get(..len)).ok_or(Malformed)?;
        if short {
            return Header::parse_short(psdu, plan.transfer(), before);
        }
        let (header, body) = Header::parse(psdu)?;
        // In the improved variant packets have the short header only. The paper's leaves no group out.
        let paper = matches!(self, Frames::Paper) && header.flags.left_out.is_some();
        let foreign = self.header_len(header.kind) != HEADER_LEN || paper;
        if foreign {
            Err(Malformed)
        } else {
            Ok((header, body))
        }
    }

    /// Begins a frame of `len` octets in `out` and returns its body, zeroed.
    pub fn begin<'a>(
        &self,
        out: &'a mut Outbox,
        plan: &Plan,
        header: &Header,
        len: usize,
    ) -> &'a mut [u8] {
        let frame = out.write(len);
        let body = match self.header_len(header.kind) {
            SHORT_HEADER_LEN => header.emit_short(frame),
            _ => header.emit(frame),
        };
        let body = body.unwrap_or_default();
        let end = body.len().saturating_sub(self.tag_of(plan, header.kind));
        body.get_mut(..end).unwrap_or_default()
    }

    /// Seals the frame in `out`, which has been written whole.
    pub fn seal(&self, out: &mut Outbox, nonce: &Nonce) {
        let Frames::Improved(seal) = self else { return };
        let frame = out.frame_mut();
        // Relays read CTRL and NACK, and every node the plan: only payloads are secret. `begin` left room for the tag, so
        // neither can fail.
        let _ = match nonce.kind {
            Kind::Data | Kind::Coded => seal.seal(nonce, self.header_len(nonce.kind), frame),
            kind => seal.sign(
                nonce.octets(),
                covered(kind, frame.len(), seal.tag_len()),
                frame,
            ),
        };
    }

    /// Encrypts the payload of a DATA or CODED frame in `out`, which has no tag, and returns the payload's tag.
    pub fn mask(&self, out: &mut Outbox, nonce: &Nonce) -> Tag {
        let Frames::Improved(seal) = self else {
            return Tag::default();
        };
        let payload = out.frame_mut().get_mut(self.header_len(nonce.kind)..);
        let tag = payload.and_then(|payload| seal.mask(nonce, payload));
        tag.unwrap_or_default()
    }

    /// The tag that a packet adds to that of its block. The payload is encrypted by it.
    pub fn tag_of_packet(&self, plan: &Plan, packet: u32, payload: &mut [u8]) -> Tag {
        match self {
            Frames::Paper => Tag::default(),
            Frames::Improved(seal) => {
                let tag = seal.mask(&Nonce::of_data(plan, packet), payload);
                tag.unwrap_or_default()
            }
        }
    }

    /// Opens a DATA or CODED frame in place and returns its payload; `None` if its source did not send it. Where such frames
    /// have no tag, nothing is known of their source.
    pub fn open<'a>(&self, plan: &Plan, nonce: &Nonce, frame: &'a mut [u8]) -> Option<&'a [u8]> {
        let open = self.header_len(nonce.kind);
        if let (Frames::Improved(seal), true) = (self, plan.tags_segments()) {
            let payload = frame.get_mut(open..)?;
            seal.mask(nonce, payload)?;
            return Some(payload);
        }
        let genuine = match self {
            Frames::Paper => true,
            Frames::Improved(seal) => seal.open(nonce, open, frame),
        };
        let end = frame.len().checked_sub(self.tag_len())?;
        frame.get(open..end).filter(|_| genuine)
    }

    /// What the slot of its flood adds to a plan's tag: that of an empty message of which the nonce names plan and slot. Zero without
    /// a key.
    pub fn tag_of_slot(&self, plan: &Plan, slot: u8) -> Tag {
        let Frames::Improved(seal) = self else {
            return Tag::default();
        };
        let nonce = Nonce {
            extra: 1 + u16::from(slot),
            ..Nonce::of_plan(plan)
        };
        seal.mask(&nonce, &mut []).unwrap_or_default()
    }

    /// Adds `tag` to the one at the end of a frame, which is the exclusive or of both.
    pub fn add_tag(&self, frame: &mut [u8], tag: Tag) {
        let place = frame.len().checked_sub(self.tag_len());
        let place = place.and_then(|from| frame.get_mut(from..));
        let octets = place.unwrap_or_default().iter_mut();
        octets.zip(tag).for_each(|(octet, added)| *octet ^= added);
    }

    /// The tag at the end of a frame; zero without a key.
    pub fn tag_in(&self, frame: &[u8]) -> Tag {
        let from = frame.len().saturating_sub(self.tag_len());
        let octets = frame.get(from..).unwrap_or_default();
        octets.try_into().unwrap_or_default()
    }

    /// Writes the tags of blocks, and their tag, to the CTRL in `out`. Its fields have been written.
    pub fn write_tags(&self, out: &mut Outbox, nonce: &Nonce, tags: &Tags) {
        let Frames::Improved(seal) = self else { return };
        let front = HEADER_LEN + CTRL_FIELDS + tags.len();
        let place = out.frame_mut().get_mut(..front + TAG_LEN);
        if let Some(place) = place.filter(|_| !tags.is_empty()) {
            tags.emit(
                place
                    .get_mut(HEADER_LEN + CTRL_FIELDS..front)
                    .unwrap_or_default(),
            );
            // There is room: the number of blocks follows from the payload.
            let _ = seal.sign(nonce.of_tags().octets(), front, place);
        }
    }

    /// The tags of blocks in a CTRL; `None` if they are not its source's. `blocks` says how many there are.
    pub fn read_tags(&self, nonce: &Nonce, psdu: &[u8], blocks: &Tags) -> Option<Tags> {
        let Frames::Improved(seal) = self else {
            return None;
        };
        let front = HEADER_LEN + CTRL_FIELDS + blocks.len();
        let place = psdu.get(..front + TAG_LEN)?;
        let genuine = seal.verify(nonce.of_tags().octets(), front, place);
        let tags = place.get(HEADER_LEN + CTRL_FIELDS..front)?;
        genuine.then(|| blocks.read(tags))
    }

    /// Whether a PLAN, CTRL or NACK frame is genuine. The paper's variant cannot tell.
    pub fn is_genuine(&self, nonce: &Nonce, psdu: &[u8]) -> bool {
        match self {
            Frames::Paper => true,
            Frames::Improved(seal) => {
                let covered = covered(nonce.kind, psdu.len(), seal.tag_len());
                seal.verify(nonce.octets(), covered, psdu)
            }
        }
    }
}

/// Octets that the tag of a PLAN, CTRL or NACK of `len` octets covers.
fn covered(kind: Kind, len: usize, tag: usize) -> usize {
    let all = len.saturating_sub(tag);
    match kind {
        Kind::Ctrl => all.min(HEADER_LEN + CTRL_FIELDS),
        _ => all,
    }
}

impl Nonce {
    pub fn of_plan(plan: &Plan) -> Nonce {
        Nonce {
            destination: plan.destination(),
            // The paper's variant seals nothing, so its nonces are never used.
            session: plan.session().unwrap_or_default(),
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

    /// Of the tags in a CTRL, whose own nonce this is.
    fn of_tags(&self) -> Nonce {
        Nonce {
            extra: self.extra | 1 << 15,
            ..*self
        }
    }

    /// What the node with this turn tells. Each has one turn in a session.
    pub fn of_tally(plan: &Plan, turn: u8) -> Nonce {
        Nonce {
            kind: Kind::Tally,
            round: turn,
            ..Nonce::of_plan(plan)
        }
    }

    pub fn of_nack(plan: &Plan, header: &Header, nack: &Nack<'_>) -> Nonce {
        Nonce {
            kind: Kind::Nack,
            number: u32::from(nack.base) | u32::from(header.flags.bits() >> 6) << 16,
            round: header.round,
            // A NACK tells of fewer than 2^12 packets.
            extra: nack.missing
                | u16::from(header.flags.both) << 15
                | u16::from(header.flags.by_group) << 14
                | u16::from(header.flags.group) << 12,
            ..Nonce::of_plan(plan)
        }
    }
}
