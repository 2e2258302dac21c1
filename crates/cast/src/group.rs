//! The members of a group: a list that the group's owner signs, and a member's seat in it.
//!
//! ```text
//! chappe-group-2 lab
//! owner <Ed25519 key>
//! serial 3
//! wrap <X25519 key>
//! member 1 sends base <Ed25519 key> <X25519 key> <wrapped secret>
//! member 2 - hill <Ed25519 key> <X25519 key> <wrapped secret>
//! signature <Ed25519 signature of all lines above>
//! ```
//!
//! The list is not secret. Each change raises the serial and draws a new secret of the group, which the list holds once for each
//! member, encrypted to that member's key. So a member that is left out of a list cannot learn its secret.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use chappe_live::{GroupKey, Membership, Secret};
use chappe_session::Cipher;
use litemap::LiteMap;

use crate::error::{Error, Result};
use crate::key::{self, MemberKey, Public, SignKey, VerifyKey, hex, unhex};

/// Largest size of a list in octets: 256 members with names of 32.
const LIST_MAX: usize = 120_000;
/// Longest name of a group or member in octets.
pub const NAME_MAX: usize = 32;
/// Largest member number: Pacifier's frames have one octet for it.
pub const MEMBER_MAX: u16 = 255;
/// Domain separation: the owner's signatures for other purposes differ.
const SIGNED: &[u8] = b"chappe cast group v2\0";
/// The BLAKE3 context of the keys that encrypt the secret of the group.
const WRAPPED: &str = "chappe cast 2026-11 secret of a group for one member";
const TAG: &str = "chappe-group-2";

/// A member in the list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its name, which all members show.
    pub name: String,
    /// Whether it may send files.
    pub sends: bool,
    /// The public keys of the member.
    pub public: Public,
    /// The secret of the group, encrypted to its key.
    wrapped: [u8; 48],
}

/// A list of members whose signature is right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name of the group.
    pub name: String,
    /// The key of its owner.
    pub owner: VerifyKey,
    /// Which list it is. A later one has a higher serial.
    pub serial: u32,
    /// The members by their numbers.
    pub members: LiteMap<u16, Entry>,
    wrap: [u8; 32],
    text: Arc<[u8]>,
}

/// A member's place in its group.
#[derive(Clone)]
pub struct Seat {
    /// The list of members.
    pub group: Arc<Group>,
    /// The member's own key.
    pub key: Arc<MemberKey>,
    /// The number of the member.
    pub node: u16,
    secret: GroupKey,
    /// Where the list is stored, if it is.
    path: Option<PathBuf>,
}

impl std::fmt::Debug for Seat {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seat({} of list {})", self.node, self.group.serial)
    }
}

/// A member to be put into a list.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// The number of the member.
    pub node: u16,
    /// The name of the member.
    pub name: String,
    /// Whether it may send files.
    pub sends: bool,
    /// The public keys of the member.
    pub public: Public,
}

impl Group {
    /// Reads and checks the list in a file.
    pub fn read(path: &Path) -> Result<Group> {
        let named = path.display();
        let text = fs::read(path).map_err(|error| {
            let todo = "copy the .group file from the group's owner, or make a group: `chappe cast keygen lab base hill`";
            Error::input(format!("cannot read the group {named}: {error}"), todo)
        })?;
        if text.starts_with(b"chappe-group-1") {
            let what =
                format!("{named} is of a former version, in which all members shared one key");
            let todo =
                "make a group with a key for each member: `chappe cast keygen NAME MEMBER...`";
            return Err(Error::input(what, todo));
        }
        Group::parse(&text).ok_or_else(|| {
            let what = format!("{named} is no list of a group's members, or was changed");
            Error::input(what, "copy the .group file again from the group's owner")
        })
    }

    /// Reads a list; `None` if it is malformed or not signed by the owner that it names.
    pub fn parse(text: &[u8]) -> Option<Group> {
        if text.len() > LIST_MAX {
            return None;
        }
        let whole = std::str::from_utf8(text).ok()?;
        let at = whole.rfind("signature ")?;
        let (body, signature) = whole.split_at_checked(at)?;
        let signature: [u8; 64] = unhex(signature.strip_prefix("signature ")?.trim_end())?;
        let mut lines = body.lines();
        let name = lines.next()?.strip_prefix(TAG)?.trim();
        let mut field = |tag: &str| lines.next()?.strip_prefix(tag)?.strip_prefix(' ');
        let owner = VerifyKey::of(&unhex(field("owner")?)?)?;
        let serial = field("serial")?.parse().ok()?;
        let wrap = unhex(field("wrap")?)?;
        if !owner.verifies(&[SIGNED, body.as_bytes()].concat(), &signature) || !is_name(name) {
            return None;
        }
        let mut members = LiteMap::new();
        for line in lines {
            let mut words = line.strip_prefix("member ")?.split(' ');
            let node: u16 = words
                .next()?
                .parse()
                .ok()
                .filter(|node| *node <= MEMBER_MAX)?;
            let sends = match words.next()? {
                "sends" => true,
                "-" => false,
                _ => return None,
            };
            let name = words.next().filter(|name| is_name(name))?.to_owned();
            let public = Public {
                sign: VerifyKey::of(&unhex(words.next()?)?)?,
                agree: unhex(words.next()?)?,
            };
            let wrapped = unhex(words.next()?)?;
            let entry = Entry {
                name,
                sends,
                public,
                wrapped,
            };
            members.insert(node, entry);
        }
        Some(Group {
            name: name.to_owned(),
            owner,
            serial,
            members,
            wrap,
            text: text.into(),
        })
    }

    /// Makes and signs a list with a new secret.
    pub fn sign(name: &str, serial: u32, members: &[Candidate], owner: &SignKey) -> Result<Group> {
        let drawn = (
            chappe_sys::random_key()?,
            Secret::new(chappe_sys::random_key()?),
        );
        Group::sign_with(name, serial, members, owner, drawn)
    }

    fn sign_with(
        name: &str,
        serial: u32,
        members: &[Candidate],
        owner: &SignKey,
        (secret, ephemeral): ([u8; 32], Secret),
    ) -> Result<Group> {
        let wrap = ephemeral.public();
        let mut text = String::new();
        let own = hex(owner.verify_key().octets());
        let _ = writeln!(
            text,
            "{TAG} {name}\nowner {own}\nserial {serial}\nwrap {}",
            hex(&wrap)
        );
        for member in members {
            let agree = member.public.agree;
            let shared = ephemeral.shared_with(agree);
            let mut wrapped = [0; 48];
            let (octets, place) = wrapped.split_at_mut(32);
            octets.copy_from_slice(&secret);
            let cipher = Cipher::new(&wrapping(&shared, &wrap, &agree));
            // A nonce that does not change: the key is used once.
            let tag = cipher.seal([0; 12], &serial.to_be_bytes(), octets);
            let failed = || Error::failed("the secret of the group cannot be encrypted", "");
            place.copy_from_slice(&tag.ok_or_else(failed)?);
            let sends = if member.sends { "sends" } else { "-" };
            let keys = [hex(member.public.sign.octets()), hex(&agree), hex(&wrapped)].join(" ");
            let _ = writeln!(
                text,
                "member {} {sends} {} {keys}",
                member.node, member.name
            );
        }
        let signature = owner.sign(&[SIGNED, text.as_bytes()].concat());
        let _ = writeln!(text, "signature {}", hex(&signature));
        let wrong = || {
            Error::input(
                format!("{name:?} or the name of a member cannot be used"),
                NAMES,
            )
        };
        Group::parse(text.as_bytes()).ok_or_else(wrong)
    }

    /// The list as in its file.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// Writes the list to a file, replacing a former one in one step.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut beside = path.as_os_str().to_owned();
        beside.push(".new");
        fs::write(&beside, &self.text)?;
        fs::rename(&beside, path)
    }

    /// The name of a member, or its number if it is not in the list.
    pub fn name_of(&self, node: u16) -> String {
        let entry = self.members.get(&node);
        entry.map_or_else(|| node.to_string(), |entry| entry.name.clone())
    }

    /// Whether `signature` is that of member `node`.
    pub fn verifies(&self, node: u16, message: &[u8], signature: &[u8; 64]) -> bool {
        let entry = self.members.get(&node);
        entry.is_some_and(|entry| entry.public.sign.verifies(message, signature))
    }

    /// The member with this name or number.
    pub fn find(&self, who: &str) -> Option<u16> {
        let number = who
            .parse()
            .ok()
            .filter(|node| self.members.contains_key(node));
        let named = || self.members.iter().find(|(_, entry)| entry.name == who);
        number.or_else(|| named().map(|(node, _)| *node))
    }

    /// The members, to be put into the next list.
    pub fn candidates(&self) -> Vec<Candidate> {
        let members = self.members.iter();
        let candidate = |(&node, entry): (&u16, &Entry)| Candidate {
            node,
            name: entry.name.clone(),
            sends: entry.sends,
            public: entry.public.clone(),
        };
        members.map(candidate).collect()
    }

    fn secret_for(&self, node: u16, key: &MemberKey) -> Option<GroupKey> {
        let entry = self.members.get(&node)?;
        let shared = key.agree().shared_with(self.wrap);
        let cipher = Cipher::new(&wrapping(&shared, &self.wrap, &entry.public.agree));
        let mut wrapped = entry.wrapped;
        let (octets, tag) = wrapped.split_at_mut(32);
        cipher.open([0; 12], &self.serial.to_be_bytes(), octets, tag)?;
        Some(GroupKey::new((&*octets).try_into().ok()?))
    }
}

/// The rule for names, as a remedy.
pub const NAMES: &str = "use names of 1 to 32 letters, digits, dots, dashes and underscores, and different numbers from 0 to 255";

/// Whether a name can stand in a list: it has no space, and cannot disturb a terminal.
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_');
    (1..=NAME_MAX).contains(&name.len()) && name.chars().all(plain)
}

fn wrapping(shared: &[u8; 32], wrap: &[u8; 32], agree: &[u8; 32]) -> [u8; 32] {
    blake3::derive_key(WRAPPED, &[shared, &wrap[..], agree].concat())
}

impl Seat {
    /// Finds the place of the holder of a key in the list of a file.
    pub fn open(group: &Path, key: &Path) -> Result<Seat> {
        let (list, key_of) = (Group::read(group)?, MemberKey::read(key)?);
        let absent = format!(
            "{} is not among the members of {} (list {} of group {})",
            key.display(),
            group.display(),
            list.serial,
            list.name
        );
        let todo = "the owner adds it by `chappe cast admit GROUP FILE.pub`; if it was revoked, it needs a new key";
        let seat = Seat::new(list, key_of).ok_or_else(|| Error::input(absent, todo))?;
        Ok(Seat {
            path: Some(group.to_owned()),
            ..seat
        })
    }

    /// The place of the holder of `key`; `None` if the list has none.
    pub fn new(group: Group, key: MemberKey) -> Option<Seat> {
        let public = key.public();
        let mut members = group.members.iter();
        let (&node, _) = members.find(|(_, entry)| entry.public == public)?;
        let secret = group.secret_for(node, &key)?;
        Some(Seat {
            group: Arc::new(group),
            key: Arc::new(key),
            node,
            secret,
            path: None,
        })
    }

    /// Member `node` of a group for tests and examples, of members 0 to `nodes` - 1, whose keys follow from `seed`. All may send.
    pub fn example(node: u16, nodes: u16, seed: u8) -> Seat {
        Seat::example_of(node, nodes, seed, |_| true)
    }

    /// Like [`example`](Self::example), for a group of which only some may send.
    pub fn example_of(node: u16, nodes: u16, seed: u8, sends: impl Fn(u16) -> bool) -> Seat {
        let key = |node: u16| MemberKey::new(*blake3::hash(&[seed, node as u8]).as_bytes());
        let candidate = |node| Candidate {
            node,
            name: format!("host{node}"),
            sends: sends(node),
            public: key(node).public(),
        };
        let members: Vec<Candidate> = (0..nodes).map(candidate).collect();
        let owner = SignKey::new(&[seed; 32]);
        let drawn = ([seed; 32], Secret::new([!seed; 32]));
        let group = Group::sign_with("example", 1, &members, &owner, drawn);
        let seat = group.ok().and_then(|group| Seat::new(group, key(node)));
        seat.unwrap_or_else(|| unreachable!("an example's names and numbers are right"))
    }

    /// The name of the member.
    pub fn name(&self) -> String {
        self.group.name_of(self.node)
    }

    /// The membership for the link.
    pub fn membership(&self) -> Membership {
        let members = self.group.members.iter();
        Membership {
            serial: self.group.serial,
            key: self.secret.clone(),
            secret: self.key.agree().clone(),
            members: members
                .map(|(&node, entry)| (node, entry.public.agree))
                .collect(),
            notice: self.group.text.clone(),
        }
    }

    /// Takes over a list that has arrived. `None` if it is not a later one of the same owner. An error if this member is no
    /// longer in it. The file of the list is replaced if it can be written.
    pub fn renew(&mut self, text: &[u8]) -> Option<Result<()>> {
        let group = Group::parse(text)?;
        if group.owner != self.group.owner || group.serial <= self.group.serial {
            return None;
        }
        let (serial, name) = (group.serial, group.name.clone());
        let path = self.path.take();
        let Some(seat) = Seat::new(group, (*self.key).clone()) else {
            let what = format!("the owner of group {name} has revoked this member (list {serial})");
            let todo = "ask the owner; a new key can be admitted: `chappe cast admit`";
            return Some(Err(Error::failed(what, todo)));
        };
        *self = Seat { path, ..seat };
        if let Some(path) = &self.path {
            // A service may have no right to write it. It gets the list again after a restart.
            let _ = self.group.write(path);
        }
        Some(Ok(()))
    }
}

/// Makes a group of which this host has all keys: `NAME.owner`, `NAME.group`, and `MEMBER.key` beside them for each member.
/// Returns the files. If one of them exists, nothing is written.
pub fn create(name: &Path, members: &[(u16, String, bool)]) -> Result<Vec<PathBuf>> {
    let folder = name.parent().unwrap_or(Path::new(""));
    let with = |suffix: &str| {
        let mut path = name.as_os_str().to_owned();
        path.push(suffix);
        PathBuf::from(path)
    };
    let (owner, list) = (with(".owner"), with(".group"));
    let keys = members
        .iter()
        .map(|(_, name, _)| folder.join(format!("{name}.key")));
    let files: Vec<PathBuf> = [owner.clone(), list.clone()]
        .into_iter()
        .chain(keys)
        .collect();
    key::refuse_existing(&files)?;
    let own = SignKey::new(&chappe_sys::random_key()?);
    let named = name
        .file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into());
    let mut candidates: Vec<Candidate> = Vec::new();
    let mut made = Vec::new();
    for (node, name, sends) in members {
        let key = MemberKey::new(chappe_sys::random_key()?);
        let twice = |other: &Candidate| other.node == *node || other.name == *name;
        if !is_name(name) || *node > MEMBER_MAX || candidates.iter().any(twice) {
            return Err(Error::input(
                format!("member {node} ({name}) cannot be added"),
                NAMES,
            ));
        }
        candidates.push(Candidate {
            node: *node,
            name: name.clone(),
            sends: *sends,
            public: key.public(),
        });
        made.push(key);
    }
    let group = Group::sign(&named, 1, &candidates, &own)?;
    let mut written = Vec::new();
    let result = (|| {
        own.write_owner(&owner)?;
        written.push(owner.clone());
        for (key, path) in made.iter().zip(&files[2..]) {
            key.write(path)?;
            written.push(path.clone());
        }
        let failed = |error| key::unwritable(&list, &error);
        chappe_sys::write_new(&list, 0o644, group.text()).map_err(failed)
    })();
    if result.is_err() {
        // A full disk must not leave a part of a group that blocks the second try.
        written.iter().for_each(|path| drop(fs::remove_file(path)));
    }
    result.map(|()| files)
}

/// Adds a member to the list in a file, or changes the rights of one. Returns the new list.
pub fn admit(group: &Path, owner: &Path, candidate: Candidate) -> Result<Group> {
    let (list, own) = (Group::read(group)?, owner_of(group, owner)?);
    let mut members = list.candidates();
    members.retain(|member| member.public != candidate.public);
    let taken =
        |member: &&Candidate| member.node == candidate.node || member.name == candidate.name;
    if let Some(member) = members.iter().find(taken) {
        let what = format!("member {} is {} already", member.node, member.name);
        return Err(Error::input(
            what,
            "give another number or name: --node N, --name NAME",
        ));
    }
    members.push(candidate);
    change(group, &list, &members, &own)
}

/// Removes a member, by name or number, from the list in a file. Returns the new list.
pub fn revoke(group: &Path, owner: &Path, who: &str) -> Result<Group> {
    let (list, own) = (Group::read(group)?, owner_of(group, owner)?);
    let node = list.find(who).ok_or_else(|| {
        let what = format!("{who} is not among the members of {}", group.display());
        Error::input(
            what,
            format!("list them: `chappe cast members {}`", group.display()),
        )
    })?;
    let mut members = list.candidates();
    members.retain(|member| member.node != node);
    change(group, &list, &members, &own)
}

fn owner_of(group: &Path, owner: &Path) -> Result<SignKey> {
    let (list, own) = (Group::read(group)?, SignKey::read_owner(owner)?);
    if own.verify_key() != list.owner {
        let what = format!(
            "{} is not the key of the owner of {}",
            owner.display(),
            group.display()
        );
        return Err(Error::input(
            what,
            "give the .owner file that belongs to the group: --owner FILE",
        ));
    }
    Ok(own)
}

fn change(path: &Path, list: &Group, members: &[Candidate], own: &SignKey) -> Result<Group> {
    let group = Group::sign(&list.name, list.serial.saturating_add(1), members, own)?;
    group
        .write(path)
        .map_err(|error| key::unwritable(path, &error))?;
    Ok(group)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    fn three(place: &Scratch) -> (PathBuf, PathBuf) {
        let members = [(1, "base", true), (2, "hill", false), (7, "barn", false)];
        let members = members.map(|(node, name, sends)| (node, name.to_owned(), sends));
        create(&place.path("lab"), &members).unwrap();
        (place.path("lab.group"), place.path("lab.owner"))
    }

    #[test]
    fn members_find_their_seats() {
        let place = Scratch::new("seats");
        let (group, _) = three(&place);
        let seats = ["base", "hill", "barn"]
            .map(|name| Seat::open(&group, &place.path(&format!("{name}.key"))).unwrap());
        assert_eq!(seats.each_ref().map(|seat| seat.node), [1, 2, 7]);
        assert_eq!(seats[0].membership().key, seats[2].membership().key);
        assert_eq!(seats[0].membership().members.len(), 3);
        assert_eq!(
            (seats[2].name(), seats[0].group.members[&1].sends),
            ("barn".into(), true)
        );
        let again = create(&place.path("lab"), &[(1, "base".into(), true)]).unwrap_err();
        assert!(again.what.contains("exists"), "{again}");
    }

    /// Goal: a changed list is refused. Method: every octet of one is changed.
    #[test]
    fn a_changed_list_is_refused() {
        let place = Scratch::new("changed");
        let (group, _) = three(&place);
        let text = fs::read(&group).unwrap();
        for at in 0..text.len() - 1 {
            let mut bent = text.clone();
            bent[at] ^= 1;
            // Capital digits and spaces at the end of the signature mean the same.
            assert!(Group::parse(&bent).is_none(), "octet {at}");
        }
        assert!((0..text.len() - 1).all(|len| Group::parse(&text[..len]).is_none()));
    }

    /// A revoked member is not in the next list, and cannot open its secret; the others take it over, but no list of another owner
    /// and no older one.
    #[test]
    fn a_revoked_member_has_no_seat() {
        let place = Scratch::new("revoked");
        let (group, owner) = three(&place);
        let old = fs::read(&group).unwrap();
        let mut seats = ["base", "hill"]
            .map(|name| Seat::open(&group, &place.path(&format!("{name}.key"))).unwrap());
        let first = seats[0].membership().key;
        let list = revoke(&group, &owner, "hill").unwrap();
        assert_eq!((list.serial, list.members.len()), (2, 2));
        assert_eq!(seats[0].renew(list.text()), Some(Ok(())));
        assert_ne!(seats[0].membership().key, first);
        let gone = seats[1].renew(list.text()).unwrap().unwrap_err();
        assert!(gone.what.contains("revoked"), "{gone}");
        assert_eq!(seats[0].renew(&old), None);
        assert_eq!(seats[0].renew(list.text()), None);
        let error = Seat::open(&group, &place.path("hill.key")).err().unwrap();
        assert!(error.todo.contains("needs a new key"), "{error}");
        fs::create_dir(place.path("other")).unwrap();
        let other = create(&place.path("other/lab"), &[(1, "base".into(), true)]).unwrap();
        assert_eq!(seats[0].renew(&fs::read(&other[1]).unwrap()), None);
        let error = revoke(&group, &other[0], "base").unwrap_err();
        assert!(error.what.contains("not the key of the owner"), "{error}");
    }

    #[test]
    fn a_new_member_is_admitted() {
        let place = Scratch::new("admitted");
        let (group, owner) = three(&place);
        let key = MemberKey::new([9; 32]);
        let candidate = |node, name: &str| Candidate {
            node,
            name: name.into(),
            sends: true,
            public: key.public(),
        };
        let error = admit(&group, &owner, candidate(2, "mill")).unwrap_err();
        assert!(error.what.contains("member 2 is hill already"), "{error}");
        let list = admit(&group, &owner, candidate(3, "mill")).unwrap();
        assert_eq!(Seat::new(list, key.clone()).unwrap().node, 3);
    }

    #[test]
    fn a_former_group_is_explained() {
        let place = Scratch::new("former");
        fs::write(place.path("old.group"), "chappe-group-1 00").unwrap();
        let error = Group::read(&place.path("old.group")).unwrap_err();
        assert!(error.todo.contains("chappe cast keygen"), "{error}");
    }
}
