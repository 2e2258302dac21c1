//! A writer of JSON: no value of this crate needs more.

use std::fmt::Write;

/// A document in the making.
#[derive(Clone, Debug, Default)]
pub struct Json {
    out: String,
    /// Whether a comma stands before the next value.
    comma: bool,
}

impl Json {
    /// The document, with a line's end.
    pub fn finish(mut self) -> String {
        self.out.push('\n');
        self.out
    }

    /// The key of the next value.
    pub fn key(&mut self, key: &str) -> &mut Json {
        self.separate();
        self.quote(key);
        self.out.push(':');
        self.comma = false;
        self
    }

    /// An object, whose members `members` writes.
    pub fn object(&mut self, members: impl FnOnce(&mut Json)) {
        self.separate();
        self.out.push('{');
        self.comma = false;
        members(self);
        self.out.push('}');
        self.comma = true;
    }

    /// An array with a value for each item.
    pub fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Json, &T)) {
        self.separate();
        self.out.push('[');
        self.comma = false;
        for item in items {
            each(self, item);
        }
        self.out.push(']');
        self.comma = true;
    }

    /// A string in quotes.
    pub fn text(&mut self, text: &str) {
        self.separate();
        self.quote(text);
        self.comma = true;
    }

    /// A number; null if it is none.
    pub fn number(&mut self, number: f64) {
        self.maybe(Some(number));
    }

    /// A number, or null.
    pub fn maybe(&mut self, number: Option<f64>) {
        self.separate();
        match number.filter(|number| number.is_finite()) {
            Some(number) => {
                let _ = write!(self.out, "{number}");
            }
            None => self.out.push_str("null"),
        }
        self.comma = true;
    }

    fn separate(&mut self) {
        if self.comma {
            self.out.push(',');
        }
        self.comma = false;
    }

    fn quote(&mut self, text: &str) {
        self.out.push('"');
        for letter in text.chars() {
            match letter {
                '"' | '\\' => {
                    self.out.push('\\');
                    self.out.push(letter);
                }
                control if control < ' ' => {
                    let _ = write!(self.out, "\\u{:04x}", u32::from(control));
                }
                other => self.out.push(other),
            }
        }
        self.out.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_separated_and_quoted() {
        let mut json = Json::default();
        json.object(|json| {
            json.key("a\"\n")
                .list(&[1.0, 2.5], |json, number| json.number(*number));
            json.key("b").maybe(Some(f64::NAN));
            json.key("c").object(|json| json.key("d").text("e\\"));
        });
        assert_eq!(
            json.finish(),
            "{\"a\\\"\\u000a\":[1,2.5],\"b\":null,\"c\":{\"d\":\"e\\\\\"}}\n"
        );
    }
}
