//! Keys and their files.
//!
//! | file | holder | purpose |
//! |---|---|---|
//! | `NAME.owner` | the owner of the group | signs the list of members |
//! | `NAME.group` | every member; not secret | the list: see [`group`](crate::group) |
//! | `MEMBER.key` | that member | agrees on keys with other members; signs what the member says, and its tickets if it may send |
//! | `MEMBER.pub` | the owner, once; not secret | the public half, with which a member is admitted |
//!
//! A key file is one line of text: a tag and octets in hexadecimal digits. Secret files are created with mode 0600, and rejected if
//! anyone but the owner can read them.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chappe_live::Secret;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::error::{Error, Result};

/// Length of every key in octets.
const LENGTH: usize = 32;
/// Largest size of a key file in octets.
const FILE_MAX: u64 = 1024;

/// The BLAKE3 contexts of what is derived from a member's key.
const SIGNS: &str = "chappe cast 2026-11 signatures of a member";
const AGREES: &str = "chappe cast 2026-11 agreements of a member";

/// The kind of key in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Owner,
    Member,
}

/// A secret key that signs: the owner's, or a member's.
#[derive(Clone)]
pub struct SignKey(SigningKey);

/// The public key with which signatures are checked.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyKey(VerifyingKey);

/// The secret key of a member.
#[derive(Clone)]
pub struct MemberKey {
    octets: [u8; LENGTH],
    sign: SignKey,
    agree: Secret,
}

/// The public keys of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Public {
    /// Checks the signatures of the member.
    pub sign: VerifyKey,
    /// Agrees on keys with it (X25519).
    pub agree: [u8; LENGTH],
}

impl MemberKey {
    /// The key that follows from 32 secret random octets.
    pub fn new(octets: [u8; LENGTH]) -> MemberKey {
        MemberKey {
            sign: SignKey::new(&blake3::derive_key(SIGNS, &octets)),
            agree: Secret::new(blake3::derive_key(AGREES, &octets)),
            octets,
        }
    }

    /// Makes a new key and writes it to `NAME.key`, and its public half to `NAME.pub`. If one of them exists, nothing is written.
    pub fn generate(name: &Path) -> Result<[PathBuf; 2]> {
        let with = |suffix: &str| {
            let mut path = name.as_os_str().to_owned();
            path.push(suffix);
            PathBuf::from(path)
        };
        let files = [with(".key"), with(".pub")];
        refuse_existing(&files)?;
        let key = MemberKey::new(chappe_sys::random_key()?);
        key.write(&files[0])?;
        let named = name
            .file_name()
            .map_or_else(String::new, |name| name.to_string_lossy().into());
        let public = key.public();
        let line = format!(
            "chappe-public-1 {named} {} {}\n",
            hex(public.sign.octets()),
            hex(&public.agree)
        );
        chappe_sys::write_new(&files[1], 0o644, line.as_bytes()).map_err(|error| {
            let _ = fs::remove_file(&files[0]);
            unwritable(&files[1], &error)
        })?;
        Ok(files)
    }

    /// Reads the key from its file.
    pub fn read(path: &Path) -> Result<MemberKey> {
        read(path, Purpose::Member).map(MemberKey::new)
    }

    /// Writes the key to a new file.
    pub fn write(&self, path: &Path) -> Result<()> {
        write(path, Purpose::Member, &self.octets)
    }

    /// The key that signs for this member.
    pub fn sign(&self) -> &SignKey {
        &self.sign
    }

    /// The key that agrees on keys with other members.
    pub fn agree(&self) -> &Secret {
        &self.agree
    }

    /// The public halves of the key.
    pub fn public(&self) -> Public {
        Public {
            sign: self.sign.verify_key(),
            agree: self.agree.public(),
        }
    }
}

/// Reads the name and the public keys of a member from its `.pub` file.
pub fn read_public(path: &Path) -> Result<(String, Public)> {
    let named = path.display();
    let todo = "run `chappe cast key NAME` on the new member's host, and give the owner NAME.pub";
    let text = fs::read_to_string(path)
        .map_err(|error| Error::input(format!("cannot read {named}: {error}"), todo))?;
    let words: Vec<&str> = text.split_whitespace().collect();
    let public = match words[..] {
        ["chappe-public-1", name, sign, agree] => unhex(sign)
            .as_ref()
            .and_then(VerifyKey::of)
            .zip(unhex(agree))
            .map(|(sign, agree)| (name.to_owned(), Public { sign, agree })),
        _ => None,
    };
    public.ok_or_else(|| Error::input(format!("{named} is not the public key of a member"), todo))
}

impl SignKey {
    /// Reads the key of a group's owner from its file.
    pub fn read_owner(path: &Path) -> Result<SignKey> {
        read(path, Purpose::Owner).map(|octets| SignKey::new(&octets))
    }

    /// Writes the key of a group's owner to a new file.
    pub fn write_owner(&self, path: &Path) -> Result<()> {
        write(path, Purpose::Owner, self.0.as_bytes())
    }

    /// A key from its 32 secret octets.
    pub fn new(octets: &[u8; LENGTH]) -> SignKey {
        SignKey(SigningKey::from_bytes(octets))
    }

    /// Signs `message` with Ed25519 (RFC 8032).
    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    /// The public key for this key's signatures.
    pub fn verify_key(&self) -> VerifyKey {
        VerifyKey(self.0.verifying_key())
    }
}

impl VerifyKey {
    /// The key with these octets, if there is one.
    pub fn of(octets: &[u8; LENGTH]) -> Option<VerifyKey> {
        VerifyingKey::from_bytes(octets).ok().map(VerifyKey)
    }

    /// The octets of the key.
    pub fn octets(&self) -> &[u8; LENGTH] {
        self.0.as_bytes()
    }

    /// The first octets of the key, which tell owners apart.
    pub(crate) fn mark(&self) -> [u8; 8] {
        let mut mark = [0; 8];
        mark.copy_from_slice(&self.0.as_bytes()[..8]);
        mark
    }

    /// Whether `signature` is a valid signature of `message`.
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        self.0.verify_strict(message, &signature).is_ok()
    }
}

impl fmt::Debug for SignKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignKey(..)")
    }
}

impl fmt::Debug for MemberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MemberKey(..)")
    }
}

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({})", hex(self.0.as_bytes()))
    }
}

impl Purpose {
    fn tag(self) -> &'static str {
        match self {
            Purpose::Owner => "chappe-owner-1",
            Purpose::Member => "chappe-member-1",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Purpose::Owner => "owner",
            Purpose::Member => "key",
        }
    }
}

/// An error if one of these files exists.
pub(crate) fn refuse_existing(files: &[PathBuf]) -> Result<()> {
    let there = files.iter().find(|path| path.symlink_metadata().is_ok());
    there.map_or(Ok(()), |path| {
        let what = format!("{} exists, so no key was written", path.display());
        Err(Error::input(
            what,
            "choose another name, or rename the file",
        ))
    })
}

/// The error for a file that cannot be written.
pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Error {
    let what = format!("cannot write {}: {error}", path.display());
    Error::environment(what, "choose another folder")
}

fn write(path: &Path, purpose: Purpose, octets: &[u8; LENGTH]) -> Result<()> {
    let line = format!("{} {}\n", purpose.tag(), hex(octets));
    chappe_sys::write_new(path, 0o600, line.as_bytes()).map_err(|error| unwritable(path, &error))
}

fn read(path: &Path, purpose: Purpose) -> Result<[u8; LENGTH]> {
    let named = path.display();
    let unreadable = |error: io::Error| {
        let todo = match purpose {
            Purpose::Owner => {
                "the .owner file is on the host where the group was made: name it with --owner"
            }
            Purpose::Member => {
                "run `chappe cast key NAME` to make a key, or `chappe cast keygen` to make a whole group"
            }
        };
        Error::input(format!("cannot read the key {named}: {error}"), todo)
    };
    let about = fs::metadata(path).map_err(unreadable)?;
    let not_one = |what: String| Error::input(format!("{named} {what}"), "give the right file");
    if !about.is_file() || about.len() > FILE_MAX {
        return Err(not_one("is not a key file".into()));
    }
    let text = fs::read_to_string(path).map_err(unreadable)?;
    let mut words = text.split_whitespace();
    let (tag, digits) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    if tag != purpose.tag() {
        if ["chappe-group-1", "chappe-sign-1", "chappe-verify-1"].contains(&tag) {
            let what =
                format!("{named} is of a former version, in which all members shared one key");
            let todo =
                "make a group with a key for each member: `chappe cast keygen NAME MEMBER...`";
            return Err(Error::input(what, todo));
        }
        let kinds = [Purpose::Owner, Purpose::Member];
        let kind = kinds.iter().find(|kind| kind.tag() == tag);
        let what = kind.map_or("is not a key file".into(), |kind| {
            format!(
                "is a .{} key, a .{} key is needed",
                kind.suffix(),
                purpose.suffix()
            )
        });
        return Err(not_one(what));
    }
    // Checked only for the right kind of key, since restricting access to a wrong file would not help.
    let mode = about.permissions().mode() & 0o777;
    let credentials = std::env::var_os("CREDENTIALS_DIRECTORY").map(PathBuf::from);
    if is_open(mode, path, credentials.as_deref()) {
        let what = format!("{named} can be read by others (mode {mode:03o})");
        return Err(Error::input(what, format!("run `chmod 600 {named}`")));
    }
    unhex(digits).ok_or_else(|| not_one("is damaged: a key has 64 hexadecimal digits".into()))
}

/// Whether others can read a file of this mode. systemd passes credentials to a service in a separate folder, with an ACL
/// for the service's user, which the mode shows as a permission of the group (systemd#29435).
fn is_open(mode: u32, path: &Path, credentials: Option<&Path>) -> bool {
    let others = match credentials {
        Some(folder) if path.parent() == Some(folder) => 0o037,
        _ => 0o077,
    };
    mode & others != 0
}

/// Octets as hexadecimal digits.
pub(crate) fn hex(octets: &[u8]) -> String {
    octets.iter().map(|octet| format!("{octet:02x}")).collect()
}

/// The octets of hexadecimal digits in small letters, of which there must be the right number.
pub(crate) fn unhex<const N: usize>(digits: &str) -> Option<[u8; N]> {
    let mut octets = [0; N];
    let plain = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if digits.len() != 2 * N || !digits.bytes().all(plain) {
        return None;
    }
    for (octet, at) in octets.iter_mut().zip((0..).step_by(2)) {
        *octet = u8::from_str_radix(digits.get(at..at + 2)?, 16).ok()?;
    }
    Some(octets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scratch::Scratch;

    #[test]
    fn service_credentials_are_readable() {
        let (folder, path) = (
            Path::new("/run/credentials/a"),
            Path::new("/run/credentials/a/key"),
        );
        assert!(!is_open(0o440, path, Some(folder)));
        assert!(is_open(0o440, path, None) && is_open(0o440, Path::new("key"), Some(folder)));
        assert!(is_open(0o444, path, Some(folder)) && is_open(0o460, path, Some(folder)));
        assert!(!is_open(0o600, path, None));
    }

    #[test]
    fn keys_round_trip_and_are_never_overwritten() {
        let place = Scratch::new("keys");
        let [secret, public] = MemberKey::generate(&place.path("hill")).unwrap();
        let mode = fs::metadata(&secret).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let key = MemberKey::read(&secret).unwrap();
        let (name, public) = read_public(&public).unwrap();
        assert_eq!((&name[..], &public), ("hill", &key.public()));
        let signature = key.sign().sign(b"a file");
        assert!(public.sign.verifies(b"a file", &signature));
        assert!(!public.sign.verifies(b"b file", &signature));
        let other = MemberKey::new([3; 32]);
        assert_eq!(
            key.agree().shared_with(other.public().agree),
            other.agree().shared_with(public.agree)
        );
        let again = MemberKey::generate(&place.path("hill")).unwrap_err();
        assert!(again.what.contains("exists"), "{again}");
        assert_eq!(MemberKey::read(&secret).unwrap().public(), public);
    }

    #[test]
    fn wrong_key_files_are_explained() {
        let place = Scratch::new("wrong");
        let [secret, _] = MemberKey::generate(&place.path("hill")).unwrap();
        fs::set_permissions(&secret, fs::Permissions::from_mode(0o640)).unwrap();
        let error = MemberKey::read(&secret).unwrap_err();
        assert!(error.to_string().contains("mode 640"), "{error}");
        assert!(error.todo.starts_with("run `chmod 600 "), "{error}");
        let error = SignKey::read_owner(&secret).unwrap_err();
        assert!(
            error.what.contains("is a .key key, a .owner key is needed"),
            "{error}"
        );
        for (text, expected) in [
            ("chappe-member-1 77", "64 hexadecimal digits"),
            ("chappe-sign-1 77", "former version"),
            ("hello", "is not a key file"),
        ] {
            fs::write(place.path("bent"), text).unwrap();
            fs::set_permissions(place.path("bent"), fs::Permissions::from_mode(0o600)).unwrap();
            let error = MemberKey::read(&place.path("bent")).unwrap_err();
            assert!(error.what.contains(expected), "{error}");
        }
        let error = MemberKey::read(&place.path("absent")).unwrap_err();
        assert!(error.todo.contains("chappe cast key "), "{error}");
    }
}
