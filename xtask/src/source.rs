//! Just enough of Rust's lexical grammar to look for a word in code, and not in comments or strings.

/// The source with comments, strings and characters blanked out; lines keep their numbers.
pub fn code_only(source: &str) -> String {
    let mut code = String::with_capacity(source.len());
    scan(source, |text, is_code| {
        if is_code {
            code.push_str(text);
        } else {
            code.extend(text.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
    });
    code
}

/// The source with strings and characters blanked out, and its comments; lines keep their numbers.
pub fn without_literals(source: &str) -> String {
    let mut rest = String::with_capacity(source.len());
    scan(source, |text, is_code| {
        if is_code || text.starts_with('/') {
            rest.push_str(text);
        } else {
            rest.extend(text.chars().map(|c| if c == '\n' { c } else { ' ' }));
        }
    });
    rest
}

/// The string literals, quotes included, with the line of each from 1.
pub fn strings(source: &str) -> Vec<(usize, &str)> {
    let mut strings = Vec::new();
    let mut line = 1;
    scan(source, |text, is_code| {
        if !is_code && !text.starts_with(['/', '\'']) {
            strings.push((line, text));
        }
        line += text.matches('\n').count();
    });
    strings
}

/// Gives the source to `see` in parts: a character of code, or a comment, string or character literal.
fn scan<'a>(source: &'a str, mut see: impl FnMut(&'a str, bool)) {
    let mut rest = source;
    let mut after_word = false;
    while let Some(first) = rest.chars().next() {
        let blank = match first {
            '/' => comment(rest),
            '\'' => character(rest),
            '"' => Some(1 + quoted(&rest[1..])),
            'b' | 'c' | 'r' if !after_word => prefixed_string(rest),
            _ => None,
        };
        let (taken, keep) = match blank {
            Some(len) => (len.min(rest.len()), false),
            None => (first.len_utf8(), true),
        };
        let (text, tail) = rest.split_at(taken);
        see(text, keep);
        after_word = keep && is_word(first);
        rest = tail;
    }
}

/// The words of blanked code: line number from 1, word, and the first character after it that is no space.
pub fn words(code: &str) -> Vec<(usize, &str, Option<char>)> {
    let mut words = Vec::new();
    let (mut line, mut rest) = (1, code);
    while let Some(first) = rest.chars().next() {
        if is_word(first) {
            let len = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
            let (word, tail) = rest.split_at(len);
            words.push((line, word, tail.trim_start().chars().next()));
            rest = tail;
        } else {
            line += usize::from(first == '\n');
            rest = &rest[first.len_utf8()..];
        }
    }
    words
}

/// What stands before the first `#[cfg(test)]`: in this project, tests close a file.
pub fn before_tests(code: &str) -> &str {
    code.split("#[cfg(test)]").next().unwrap_or_default()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn comment(rest: &str) -> Option<usize> {
    if rest.starts_with("//") {
        return Some(rest.find('\n').unwrap_or(rest.len()));
    }
    if !rest.starts_with("/*") {
        return None;
    }
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        if tail.starts_with(b"/*") {
            depth += 1;
            at += 2;
        } else if tail.starts_with(b"*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return Some(at);
            }
        } else {
            at += 1;
        }
    }
    Some(rest.len())
}

/// The length of a character literal at the front, or `None` for a lifetime.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.char_indices().skip(1);
    let (_, first) = chars.next()?;
    let (at, second) = chars.next()?;
    if first == '\\' {
        let after_escape = at + second.len_utf8();
        return rest[after_escape..]
            .find('\'')
            .map(|end| after_escape + end + 1);
    }
    (second == '\'').then_some(at + 1)
}

/// The length of what is left of a plain string, closing quote included.
fn quoted(rest: &str) -> usize {
    let mut escaped = false;
    for (at, byte) in rest.bytes().enumerate() {
        match byte {
            b'"' if !escaped => return at + 1,
            b'\\' => escaped = !escaped,
            _ => escaped = false,
        }
    }
    rest.len()
}

/// The length of a string with a prefix (`b"`, `c"`, `r"`, `br#"`) at the front.
fn prefixed_string(rest: &str) -> Option<usize> {
    let letters = rest.bytes().take_while(|b| b"bcr".contains(b)).count();
    let raw = rest[..letters].ends_with('r');
    if letters > 2 {
        return None;
    }
    let hashes = rest
        .bytes()
        .skip(letters)
        .take_while(|&b| b == b'#')
        .count();
    let open = letters + hashes;
    if rest.as_bytes().get(open) != Some(&b'"') || (hashes > 0 && !raw) {
        return None;
    }
    let body = &rest[open + 1..];
    if !raw {
        return Some(open + 1 + quoted(body));
    }
    let close = format!("\"{}", "#".repeat(hashes));
    let end = body.find(&close).map_or(body.len(), |at| at + close.len());
    Some(open + 1 + end)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(source: &str, expected: &[&str]) {
        let code = code_only(source);
        let found: Vec<&str> = words(&code).into_iter().map(|(_, word, _)| word).collect();
        assert_eq!(found, expected, "{source}");
    }

    #[test]
    fn words_in_comments_and_literals_do_not_count() {
        check("a // unsafe\nb", &["a", "b"]);
        check("a /* unsafe /* deep */ unsafe */ b", &["a", "b"]);
        check(r#"a("unsafe \" unsafe") b"#, &["a", "b"]);
        check("a(r#\"unsafe \" unsafe\"#) b", &["a", "b"]);
        check(r#"a(b"unsafe", c"unsafe") d"#, &["a", "d"]);
        check(r"f('\'', '\u{1F600}', 'x', '\\') g", &["f", "g"]);
    }

    #[test]
    fn code_is_kept() {
        check("fn f<'a>(x: &'a u8) {}", &["fn", "f", "a", "x", "a", "u8"]);
        check("r#type; bar\"x\" b", &["r", "type", "bar", "b"]);
        check("unsafe { todo!() }", &["unsafe", "todo"]);
    }

    #[test]
    fn strings_are_found() {
        let source = "// \"no\"\nf(\"a\nb\", 'c', r#\"d\"#)";
        assert_eq!(strings(source), [(2, "\"a\nb\""), (3, "r#\"d\"#")]);
    }

    #[test]
    fn lines_keep_their_numbers() {
        let code = code_only("\"two\nlines\" /* and\n more */\nhere !");
        assert_eq!(words(&code), [(4, "here", Some('!'))]);
    }
}
