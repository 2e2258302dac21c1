//! Finds the quote or the bracket of a TOML text that nothing closes: the parser notices it only where the next line makes no
//! sense.

/// A mark that opens something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    /// Its first octet in the text.
    pub at: usize,
    /// `[`, `{`, or one or three quotes.
    pub mark: &'static str,
}

/// Quotes, the long ones first.
const QUOTES: [&str; 4] = ["\"\"\"", "'''", "\"", "'"];

impl Open {
    /// What the mark opens: a list, a table or a text.
    pub fn what(self) -> &'static str {
        match self.mark {
            "[" => "list",
            "{" => "table",
            _ => "text",
        }
    }

    /// What closes it, with its name.
    pub fn closing(self) -> &'static str {
        match self.mark {
            "[" => "the bracket `]`",
            "{" => "the brace `}`",
            "\"" => "the quote `\"`",
            "'" => "the quote `'`",
            _ => "the three quotes",
        }
    }
}

/// The first mark that is not closed.
pub(super) fn unclosed(text: &str) -> Option<Open> {
    let mut open: Vec<Open> = Vec::new();
    // The last character that is no blank, for a `[` at the beginning of a line.
    let mut before = '\n';
    let mut at = 0;
    while let Some(letter) = text[at..].chars().next() {
        let rest = &text[at..];
        if letter == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
            continue;
        }
        if let Some(mark) = QUOTES.into_iter().find(|mark| rest.starts_with(mark)) {
            let quote = Open { at, mark };
            match end_of_text(text, quote) {
                Some(end) => at = end,
                None => return Some(quote),
            }
            before = '"';
            continue;
        }
        let last = open.last().copied();
        let is_in = |mark: &str| last.filter(|last| last.mark == mark);
        // A key in a list, a heading in a table, and a bracket of the other kind: all stand behind the missing end.
        let lacks_end = match letter {
            '=' => is_in("[").filter(|list| text[list.at..at].contains('\n')),
            '[' if before != '=' && before != ',' && before != '[' => is_in("{"),
            ']' => is_in("{"),
            '}' => is_in("["),
            _ => None,
        };
        if lacks_end.is_some() {
            return lacks_end;
        }
        match letter {
            '[' => open.push(Open { at, mark: "[" }),
            '{' => open.push(Open { at, mark: "{" }),
            ']' | '}' => drop(open.pop()),
            _ => {}
        }
        if !letter.is_whitespace() {
            before = letter;
        }
        at += letter.len_utf8();
    }
    open.first().copied()
}

/// Where a text ends that this quote opens; `None` if it does not.
fn end_of_text(text: &str, quote: Open) -> Option<usize> {
    let start = quote.at + quote.mark.len();
    let escapes = quote.mark.starts_with('"');
    let mut letters = text[start..].char_indices();
    while let Some((at, letter)) = letters.next() {
        if text[start + at..].starts_with(quote.mark) {
            return Some(start + at + quote.mark.len());
        }
        match letter {
            '\\' if escapes => drop(letters.next()),
            '\n' if quote.mark.len() == 1 => return None,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_closed_is_found_where_it_opens() {
        for (text, rest) in [
            ("[a]\nb = [1, 2\n[c]\nd = 3\n", "[1, 2"),
            ("b = [[1, 2], [3\nd = 3\n", "[3"),
            ("b = [1,\n 2\n", "[1,"),
            ("b = { c = 1\n[d]\n", "{ c"),
            ("b = { c = [1 }\n", "[1 }"),
            ("b = \"c\nd = \"e\"\n", "\"c"),
            ("b = 'c", "'c"),
            ("b = \"\"\"c\nd", "\"\"\"c"),
            ("b = \"c\\\"\nd = 1", "\"c\\"),
        ] {
            let open = unclosed(text).unwrap_or_else(|| panic!("closed: {text}"));
            assert!(text[open.at..].starts_with(rest), "{text}: {open:?}");
        }
        for text in [
            "[a]\n[[b]]\nc = [\n 'x', # ]\n [1, 2],\n]\nd = { e = [1], f = { g = \"}\" } }\n",
            "a = \"it's\"\nb = '\"'\nc = \"\"\"\n\"x\" [\n\"\"\"\n",
            "a = [{ b = 1 }, { b = 2 }]\n",
            "",
        ] {
            assert_eq!(unclosed(text), None, "{text}");
        }
    }
}
