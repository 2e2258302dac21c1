//! What steps print: at once, or held back while another lane has the terminal.

use std::cell::RefCell;

thread_local! {
    static HELD: RefCell<Option<Vec<u8>>> = const { RefCell::new(None) };
}

/// Prints text as it stands, or holds it back if this thread runs under [`hold`].
pub fn say(text: &str) {
    if !keep(text.as_bytes()) {
        print!("{text}");
    }
}

/// Whether what this thread prints is held back.
pub fn is_held() -> bool {
    HELD.with_borrow(Option::is_some)
}

/// Adds octets to what is held back; false, and nothing done, if this thread prints at once.
pub fn keep(octets: &[u8]) -> bool {
    HELD.with_borrow_mut(|held| match held {
        Some(text) => {
            text.extend_from_slice(octets);
            true
        }
        None => false,
    })
}

/// Runs `work` and returns, beside its result, what it printed by [`say`] and what the programs printed that it ran by
/// `process::show` or `process::status`. Threads that it starts print at once.
pub fn hold<T>(work: impl FnOnce() -> T) -> (T, String) {
    HELD.set(Some(Vec::new()));
    let result = work();
    let text = HELD.take().unwrap_or_default();
    (result, String::from_utf8_lossy(&text).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_held_back_until_the_work_ends() {
        let (sum, text) = hold(|| {
            say("one\n");
            assert!(is_held());
            say("two\n");
            3
        });
        assert_eq!((sum, text.as_str()), (3, "one\ntwo\n"));
        assert!(!is_held());
    }
}
