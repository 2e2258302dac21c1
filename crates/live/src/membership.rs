//! What a node knows of its group: who belongs to it, and the keys.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use subtle::ConstantTimeEq;

use crate::frame::STAMP;

/// A secret that all present members of a group share. It is renewed when a member is revoked.
///
/// It keeps strangers out cheaply: hellos and handshakes carry a keyed digest under it. It is mixed into every handshake. It
/// encrypts nothing, so who learns it can read nothing.
#[derive(Clone, PartialEq, Eq)]
pub struct GroupKey([u8; 32]);

/// The BLAKE3 context of stamps.
const STAMPS: &str = "chappe live 2026-11 stamp of a hello or handshake";
/// The BLAKE3 context of the secret that handshakes mix in.
const MIXED: &str = "chappe live 2026-11 pre-shared key of a handshake";

impl GroupKey {
    /// A key of 32 secret random octets.
    pub fn new(octets: [u8; 32]) -> GroupKey {
        GroupKey(octets)
    }

    /// The keyed digest of the octets of a frame.
    pub(crate) fn stamp(&self, octets: &[u8]) -> [u8; STAMP] {
        let key = blake3::derive_key(STAMPS, &self.0);
        let mut stamp = [0; STAMP];
        stamp.copy_from_slice(&blake3::keyed_hash(&key, octets).as_bytes()[..STAMP]);
        stamp
    }

    /// Whether the last octets of `frame` are the stamp of those before.
    pub(crate) fn has_stamped(&self, frame: &[u8]) -> bool {
        let Some((octets, stamp)) = frame.split_last_chunk::<STAMP>() else {
            return false;
        };
        self.stamp(octets).ct_eq(stamp).into()
    }

    /// The secret that handshakes mix in.
    pub(crate) fn mixed(&self) -> [u8; 32] {
        blake3::derive_key(MIXED, &self.0)
    }
}

impl fmt::Debug for GroupKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("GroupKey(..)")
    }
}

/// The secret X25519 key of a node (RFC 7748).
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// A key of 32 secret random octets.
    pub fn new(octets: [u8; 32]) -> Secret {
        Secret(octets)
    }

    /// The public half of the key.
    pub fn public(&self) -> [u8; 32] {
        curve25519_dalek::MontgomeryPoint::mul_base_clamped(self.0).to_bytes()
    }

    /// The secret shared with the owner of `public`. All zeros for some public keys that no node owns.
    pub fn shared_with(&self, public: [u8; 32]) -> [u8; 32] {
        curve25519_dalek::MontgomeryPoint(public)
            .mul_clamped(self.0)
            .to_bytes()
    }

    pub(crate) fn octets(&self) -> &[u8; 32] {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// What two members alone know ([`Membership::pair_key`]). It authenticates and encrypts nothing.
#[derive(Clone)]
pub struct PairKey([u8; 32]);

impl PairKey {
    /// Octets of a tag.
    pub const TAG: usize = 16;

    /// The tag of some octets: their keyed BLAKE3 digest, cut.
    pub fn tag(&self, octets: &[u8]) -> [u8; PairKey::TAG] {
        let mut tag = [0; PairKey::TAG];
        tag.copy_from_slice(&blake3::keyed_hash(&self.0, octets).as_bytes()[..PairKey::TAG]);
        tag
    }

    /// Whether a tag is that of the octets.
    pub fn has_tagged(&self, octets: &[u8], tag: &[u8; PairKey::TAG]) -> bool {
        self.tag(octets).ct_eq(tag).into()
    }
}

impl fmt::Debug for PairKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PairKey(..)")
    }
}

/// A node's membership in a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Membership {
    /// Which list of members this is. A later one has a higher serial.
    pub serial: u32,
    /// The secret of that list.
    pub key: GroupKey,
    /// This node's secret key.
    pub secret: Secret,
    /// The public X25519 key of each member, by node number, this node included.
    pub members: BTreeMap<u16, [u8; 32]>,
    /// The list of members as the application writes it. Nodes that have a list with a lower serial get it.
    pub notice: Arc<[u8]>,
}

impl Membership {
    /// A key for messages between this node and another member that others pass on: both ends compute the same, and no third node can.
    /// `context` tells one use from another (BLAKE3's rule: a fixed text of the program). `None` for a node that is no member, or whose
    /// public key no node owns.
    pub fn pair_key(&self, other: u16, context: &str) -> Option<PairKey> {
        let shared = self.secret.shared_with(*self.members.get(&other)?);
        (shared != [0; 32]).then(|| PairKey(blake3::derive_key(context, &shared)))
    }

    /// A group for tests and examples, of nodes 0 to `nodes` - 1, whose keys follow from `seed`.
    pub fn example(me: u16, nodes: u16, seed: u8) -> Membership {
        let secret = |node: u16| {
            let octets = [&[seed][..], &node.to_be_bytes()].concat();
            Secret::new(*blake3::hash(&octets).as_bytes())
        };
        Membership {
            serial: 1,
            key: GroupKey::new([seed; 32]),
            secret: secret(me),
            members: (0..nodes)
                .map(|node| (node, secret(node).public()))
                .collect(),
            notice: Arc::new([]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both ends compute the same key, a third one does not, nor does another use.
    #[test]
    fn two_members_share_a_key() {
        let [one, two, three] = [1, 2, 3].map(|me| Membership::example(me, 4, 7));
        let tag =
            |of: &Membership, other, context| of.pair_key(other, context).unwrap().tag(b"said");
        let said = tag(&one, 2, "a");
        assert_eq!(said, tag(&two, 1, "a"));
        assert!(two.pair_key(1, "a").unwrap().has_tagged(b"said", &said));
        assert!(!two.pair_key(1, "a").unwrap().has_tagged(b"sail", &said));
        assert_ne!(said, tag(&three, 1, "a"));
        assert_ne!(said, tag(&one, 2, "b"));
        assert!(one.pair_key(9, "a").is_none());
    }
}
