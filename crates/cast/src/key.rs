//! Keys and their files.
//!
//! | file | holder | purpose |
//! |---|---|---|
//! | `NAME.group` | every member | seals frames; every holder is a member |
//! | `NAME.sign` | senders | signs tickets, and so what receivers install |
//! | `NAME.verify` | every receiver | checks the signatures; not secret |
//!
//! Each file is one line of text: a tag and 32 octets in hexadecimal digits. Secret files are created with mode 0600, and
//! rejected if anyone but the owner can read them.

use std::fmt;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use chappe_live::GroupKey;
use ed25519_dalek::{Signature, Signer, SigningKey, VerifyingKey};

use crate::error::{Error, Result};

/// Length of every key in octets.
const LENGTH: usize = 32;
/// Largest size of a key file in octets.
const FILE_MAX: u64 = 1024;

/// The kind of key in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Purpose {
    Group,
    Sign,
    Verify,
}

/// The secret key with which a sender signs its tickets.
#[derive(Clone)]
pub struct SignKey(SigningKey);

/// The public key with which receivers check tickets.
#[derive(Clone, PartialEq, Eq)]
pub struct VerifyKey(VerifyingKey);

/// The paths of the files written by [`generate`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFiles {
    /// The group key, for every member.
    pub group: PathBuf,
    /// The signing key, for senders.
    pub sign: PathBuf,
    /// The verification key, for receivers.
    pub verify: PathBuf,
}

/// Generates the keys of a new group in three files whose names begin with `name`. If one of them exists, nothing is
/// written.
pub fn generate(name: &Path) -> Result<KeyFiles> {
    let [group, sign, verify] =
        [Purpose::Group, Purpose::Sign, Purpose::Verify].map(|purpose| with(name, purpose));
    for path in [&group, &sign, &verify] {
        if path.symlink_metadata().is_ok() {
            let what = format!("{} exists, so no key was written", path.display());
            return Err(Error::input(
                what,
                "choose another name, or rename the file",
            ));
        }
    }
    let signing = SigningKey::from_bytes(&random()?);
    write(&group, Purpose::Group, &random()?)?;
    write(&sign, Purpose::Sign, signing.as_bytes())?;
    write(&verify, Purpose::Verify, signing.verifying_key().as_bytes())?;
    Ok(KeyFiles {
        group,
        sign,
        verify,
    })
}

/// Reads a group key from its file.
pub fn group(path: &Path) -> Result<GroupKey> {
    read(path, Purpose::Group).map(GroupKey::new)
}

impl SignKey {
    /// Reads the key from its file.
    pub fn read(path: &Path) -> Result<SignKey> {
        read(path, Purpose::Sign).map(|octets| SignKey::new(&octets))
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
    /// Reads the key from its file.
    pub fn read(path: &Path) -> Result<VerifyKey> {
        let octets = read(path, Purpose::Verify)?;
        let key = VerifyingKey::from_bytes(&octets).map_err(|_| {
            let what = format!("{} contains no valid verification key", path.display());
            Error::input(what, "copy the file again from the sender")
        });
        key.map(VerifyKey)
    }

    /// The first octets of the key, which tell signers apart.
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

impl fmt::Debug for VerifyKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VerifyKey({})", hex(self.0.as_bytes()))
    }
}

impl Purpose {
    fn tag(self) -> &'static str {
        match self {
            Purpose::Group => "chappe-group-1",
            Purpose::Sign => "chappe-sign-1",
            Purpose::Verify => "chappe-verify-1",
        }
    }

    fn suffix(self) -> &'static str {
        match self {
            Purpose::Group => "group",
            Purpose::Sign => "sign",
            Purpose::Verify => "verify",
        }
    }
}

fn with(name: &Path, purpose: Purpose) -> PathBuf {
    let mut path = name.as_os_str().to_owned();
    path.push(".");
    path.push(purpose.suffix());
    path.into()
}

fn random() -> Result<[u8; LENGTH]> {
    let mut octets = [0; LENGTH];
    for eight in octets.chunks_exact_mut(8) {
        eight.copy_from_slice(&chappe_sys::random_u64()?.to_ne_bytes());
    }
    Ok(octets)
}

fn write(path: &Path, purpose: Purpose, octets: &[u8; LENGTH]) -> Result<()> {
    let failed = |error: io::Error| {
        let what = format!("cannot write {}: {error}", path.display());
        Error::environment(what, "choose another folder")
    };
    let mode = match purpose {
        Purpose::Verify => 0o644,
        _ => 0o600,
    };
    let text = format!("{} {}\n", purpose.tag(), hex(octets));
    chappe_sys::write_new(path, mode, text.as_bytes()).map_err(failed)
}

fn read(path: &Path, purpose: Purpose) -> Result<[u8; LENGTH]> {
    let named = path.display();
    let unreadable = |error: io::Error| {
        let todo = format!(
            "run `chappe cast keygen NAME` to create NAME.{}",
            purpose.suffix()
        );
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
        let kinds = [Purpose::Group, Purpose::Sign, Purpose::Verify];
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
    if purpose != Purpose::Verify && is_open(mode, path, credentials.as_deref()) {
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

fn unhex(digits: &str) -> Option<[u8; LENGTH]> {
    let mut octets = [0; LENGTH];
    if digits.len() != 2 * LENGTH || !digits.is_ascii() {
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
            Path::new("/run/credentials/a/group"),
        );
        assert!(!is_open(0o440, path, Some(folder)));
        assert!(is_open(0o440, path, None) && is_open(0o440, Path::new("group"), Some(folder)));
        assert!(is_open(0o444, path, Some(folder)) && is_open(0o460, path, Some(folder)));
        assert!(!is_open(0o600, path, None));
    }

    #[test]
    fn keys_round_trip_and_are_never_overwritten() {
        let place = Scratch::new("keys");
        let files = generate(&place.path("lab")).unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&files.group), mode(&files.sign)), (0o600, 0o600));
        group(&files.group).unwrap();
        let (sign, verify) = (SignKey::read(&files.sign), VerifyKey::read(&files.verify));
        let (sign, verify) = (sign.unwrap(), verify.unwrap());
        let signature = sign.sign(b"a file");
        assert!(verify.verifies(b"a file", &signature));
        assert!(!verify.verifies(b"b file", &signature));
        let again = generate(&place.path("lab")).unwrap_err();
        assert!(again.what.contains("exists"), "{again}");
        // The existing keys were left alone.
        assert!(verify.verifies(
            b"a file",
            &SignKey::read(&files.sign).unwrap().sign(b"a file")
        ));
    }

    #[test]
    fn keys_readable_by_others_are_rejected() {
        let place = Scratch::new("modes");
        let files = generate(&place.path("lab")).unwrap();
        fs::set_permissions(&files.group, fs::Permissions::from_mode(0o640)).unwrap();
        let error = group(&files.group).unwrap_err();
        assert!(error.to_string().contains("mode 640"), "{error}");
        assert!(error.todo.starts_with("run `chmod 600 "), "{error}");
    }

    #[test]
    fn a_wrong_key_file_is_named() {
        let place = Scratch::new("wrong");
        let files = generate(&place.path("lab")).unwrap();
        let error = group(&files.sign).unwrap_err();
        assert!(
            error
                .what
                .ends_with("is a .sign key, a .group key is needed"),
            "{error}"
        );
        let path = place.path("torn");
        fs::write(&path, "chappe-verify-1 00112233").unwrap();
        assert!(VerifyKey::read(&path).unwrap_err().what.contains("damaged"));
        assert!(
            VerifyKey::read(&place.path("none"))
                .unwrap_err()
                .what
                .contains("cannot read")
        );
    }
}
