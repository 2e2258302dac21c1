//! Just enough of Rust's modules to say which file takes which names from which other file of its crate.
//!
//! A crate is read from its root file along its `mod` declarations; what stands under `#[cfg(test)]` is left out. `use`
//! declarations and paths are then resolved through child modules, imports, re-exports and globs to the file that defines
//! the name. What a macro makes is not seen: such a name counts as defined by the module in which it is looked up.

use std::collections::{BTreeMap, BTreeSet};

use crate::source;

/// The names that one file takes from another, by both files.
pub type Ties = BTreeMap<(usize, usize), BTreeSet<String>>;

/// A crate's files and their modules.
#[derive(Default)]
pub struct Crate {
    files: Vec<File>,
    scopes: Vec<Scope>,
}

/// A file that is a module.
struct File {
    path: String,
    /// Names of the modules from the root to this one.
    module: Vec<String>,
}

/// A module: a whole file, or `mod name { ... }` in one.
#[derive(Default)]
struct Scope {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    /// Imported names and their paths as written.
    imports: BTreeMap<String, Vec<String>>,
    globs: Vec<Vec<String>>,
    /// Names of the items defined here.
    items: BTreeSet<String>,
    /// Paths and single names in code, as written.
    mentions: BTreeSet<Vec<String>>,
}

/// What a path leads to.
#[derive(Clone, Copy, Debug)]
enum Found {
    Module(usize),
    /// An item that this module defines.
    Item(usize),
}

/// Longer chains of imports than any that a reader would follow: a circle of imports ends here.
const STEPS_MAX: usize = 16;

impl Crate {
    /// Reads the crate with this root file. `text` gives the text of a file, if there is one at that path.
    pub fn read<'t>(root: &str, text: impl Fn(&str) -> Option<&'t str>) -> Crate {
        let mut read = Crate::default();
        let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
        if let Some(code) = text(root) {
            read.add_file(root, folder, Vec::new(), None, code, &text);
        }
        read
    }

    /// The path of a file.
    pub fn path(&self, file: usize) -> &str {
        &self.files[file].path
    }

    /// How many files it has.
    pub fn len(&self) -> usize {
        self.files.len()
    }

    /// The names that files take from each other, but for those between a module and the modules inside it.
    pub fn ties(&self) -> Ties {
        let mut ties = Ties::new();
        for (at, scope) in self.scopes.iter().enumerate() {
            let imported = scope.imports.values().chain(&scope.globs);
            for path in imported.chain(&scope.mentions) {
                let Some((found, name)) = self.resolve(at, path, STEPS_MAX) else {
                    continue;
                };
                let (Found::Module(target) | Found::Item(target)) = found;
                let (from, to) = (scope.file, self.scopes[target].file);
                if !self.is_inside(from, to) && !self.is_inside(to, from) {
                    ties.entry((from, to)).or_default().insert(name.to_owned());
                }
            }
        }
        ties
    }

    /// Whether the module of file `inner` is that of `outer` or stands inside it.
    fn is_inside(&self, inner: usize, outer: usize) -> bool {
        let outer = &self.files[outer].module;
        self.files[inner].module.starts_with(outer)
    }

    /// Where a path leads, and the part of it that names the item or module there.
    fn resolve<'p>(
        &self,
        from: usize,
        path: &'p [String],
        steps: usize,
    ) -> Option<(Found, &'p str)> {
        let mut rest = path.iter().map(String::as_str).peekable();
        let first = rest.next()?;
        let mut found = match first {
            "crate" => Found::Module(0),
            "self" => Found::Module(from),
            "super" => {
                let mut here = self.scopes[from].parent?;
                while rest.next_if_eq(&"super").is_some() {
                    here = self.scopes[here].parent?;
                }
                Found::Module(here)
            }
            name => self.look_up(from, name, steps)?,
        };
        let mut last = first;
        for name in rest {
            // A variant or an associated item belongs to the item before it.
            let Found::Module(module) = found else {
                break;
            };
            let next = self.look_up(module, name, steps);
            found = next.unwrap_or(Found::Item(module));
            last = name;
        }
        Some((found, last))
    }

    /// What a name stands for in a module.
    fn look_up(&self, module: usize, name: &str, steps: usize) -> Option<Found> {
        let steps = steps.checked_sub(1)?;
        let scope = &self.scopes[module];
        if let Some(child) = scope.children.get(name) {
            return Some(Found::Module(*child));
        }
        if scope.items.contains(name) {
            return Some(Found::Item(module));
        }
        if let Some(path) = scope.imports.get(name) {
            return self.resolve(module, path, steps).map(|(found, _)| found);
        }
        scope.globs.iter().find_map(|glob| {
            match self.resolve(module, glob, steps)?.0 {
                Found::Module(source) if source != module => self.look_up(source, name, steps),
                // The variants of an enumeration.
                _ => None,
            }
        })
    }

    /// Adds a file and the files of the modules that it declares; gives its scope.
    fn add_file<'t>(
        &mut self,
        path: &str,
        folder: &str,
        module: Vec<String>,
        parent: Option<usize>,
        text: &str,
        texts: &impl Fn(&str) -> Option<&'t str>,
    ) -> usize {
        let file = self.files.len();
        self.files.push(File {
            path: path.to_owned(),
            module: module.clone(),
        });
        let code = source::code_only(text);
        let tokens = without_tests(tokens(&code));
        let top = self.add_scope(file, parent);
        let declared = Reader {
            tokens: &tokens,
            at: 0,
        }
        .read(self, top);
        for (scope, inline, name) in declared {
            let within = [&[folder.to_owned()], &inline[..]].concat().join("/");
            let inner = format!("{within}/{name}");
            let places = [format!("{inner}.rs"), format!("{inner}/mod.rs")];
            let Some((place, text)) = places.iter().find_map(|p| texts(p).map(|t| (p, t))) else {
                continue;
            };
            let path = [&module[..], &inline, std::slice::from_ref(&name)].concat();
            let child = self.add_file(place, &inner, path, Some(scope), text, texts);
            self.scopes[scope].children.insert(name, child);
        }
        top
    }

    fn add_scope(&mut self, file: usize, parent: Option<usize>) -> usize {
        self.scopes.push(Scope {
            file,
            parent,
            ..Scope::default()
        });
        self.scopes.len() - 1
    }
}

/// `mod name;`: the scope that declares it, the inline modules around it, and its name.
type Declared = (usize, Vec<String>, String);

struct Reader<'a> {
    tokens: &'a [&'a str],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Reads a whole file into `top` and gives the modules that stand in files of their own.
    fn read(mut self, into: &mut Crate, top: usize) -> Vec<Declared> {
        let mut declared = Vec::new();
        // Inline modules that are open: scope, name, and the depth of braces outside it.
        let mut open: Vec<(usize, String, usize)> = Vec::new();
        let mut depth = 0;
        while let Some(token) = self.next() {
            let scope = open.last().map_or(top, |(scope, ..)| *scope);
            match token {
                "{" => depth += 1,
                "}" => {
                    depth = usize::saturating_sub(depth, 1);
                    open.pop_if(|(_, _, outside)| *outside == depth);
                }
                "mod" if self.peek(1) == Some(";") => {
                    let inline = open.iter().map(|(_, name, _)| name.clone()).collect();
                    let name = self.next().unwrap_or_default().to_owned();
                    declared.push((scope, inline, name));
                }
                "mod" if self.peek(1) == Some("{") => {
                    let name = self.next().unwrap_or_default().to_owned();
                    let child = into.add_scope(into.scopes[scope].file, Some(scope));
                    into.scopes[scope].children.insert(name.clone(), child);
                    open.push((child, name, depth));
                }
                "use" => self.tree(&[], &mut into.scopes[scope]),
                "struct" | "enum" | "union" | "fn" | "trait" | "type" | "const" | "static" => {
                    if let Some(name) = self.peek(0).filter(|name| is_name(name)) {
                        into.scopes[scope].items.insert(name.to_owned());
                        if !["mut", "fn", "unsafe", "extern"].contains(&name) {
                            self.at += 1;
                        }
                    }
                }
                "." => {
                    // A field or a method, not a path.
                    self.at += usize::from(self.peek(0).is_some_and(is_name));
                }
                name if is_name(name) => {
                    let mut path = vec![name.to_owned()];
                    while self.peek(0) == Some("::") && self.peek(1).is_some_and(is_name) {
                        path.push(self.tokens[self.at + 1].to_owned());
                        self.at += 2;
                    }
                    let is_type = name.starts_with(char::is_uppercase);
                    if path.len() > 1 || is_type {
                        into.scopes[scope].mentions.insert(path);
                    }
                }
                _ => {}
            }
        }
        declared
    }

    /// One tree of a `use` declaration.
    fn tree(&mut self, prefix: &[String], scope: &mut Scope) {
        let mut path = prefix.to_vec();
        while let Some(token) = self.next() {
            match token {
                "::" => continue,
                "{" => {
                    while self.peek(0).is_some_and(|token| token != "}") {
                        self.tree(&path, scope);
                        self.at += usize::from(self.peek(0) == Some(","));
                    }
                    self.at += 1;
                    return;
                }
                "*" => {
                    scope.globs.push(path);
                    return;
                }
                "as" => {
                    let alias = self.next().unwrap_or_default().to_owned();
                    scope.imports.insert(alias, path);
                    return;
                }
                // `use a::{self}` imports the module itself.
                "self" if !path.is_empty() => {}
                name if is_name(name) => path.push(name.to_owned()),
                _ => return,
            }
            if !matches!(self.peek(0), Some("::" | "as")) {
                if let Some(name) = path.last() {
                    scope.imports.insert(name.clone(), path);
                }
                return;
            }
        }
    }

    fn next(&mut self) -> Option<&'a str> {
        let token = self.tokens.get(self.at)?;
        self.at += 1;
        Some(token)
    }

    fn peek(&self, ahead: usize) -> Option<&'a str> {
        self.tokens.get(self.at + ahead).copied()
    }
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Words, `::`, and every other character that is no space by itself.
fn tokens(code: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = code.trim_start();
    while let Some(first) = rest.chars().next() {
        let len = if first.is_alphanumeric() || first == '_' {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_');
            end.unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (token, tail) = rest.split_at(len);
        tokens.push(token);
        rest = tail.trim_start();
    }
    tokens
}

/// Without each item under `#[cfg(test)]`.
fn without_tests(tokens: Vec<&str>) -> Vec<&str> {
    const TEST: [&str; 7] = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&TEST) {
            at = after_item(&tokens, at + TEST.len());
        } else {
            kept.push(tokens[at]);
            at += 1;
        }
    }
    kept
}

/// The place behind the item, field or statement that begins at `at`.
fn after_item(tokens: &[&str], mut at: usize) -> usize {
    const ITEMS: [&str; 13] = [
        "pub", "mod", "use", "fn", "impl", "struct", "enum", "const", "static", "extern", "trait",
        "type", "unsafe",
    ];
    while tokens[at..].starts_with(&["#", "["]) {
        at = after_group(tokens, at + 1);
    }
    let is_item = tokens.get(at).is_some_and(|first| ITEMS.contains(first));
    while let Some(token) = tokens.get(at) {
        match *token {
            ";" => return at + 1,
            "," if !is_item => return at + 1,
            "{" => return after_group(tokens, at),
            "(" | "[" => at = after_group(tokens, at),
            "}" | ")" | "]" => return at,
            _ => at += 1,
        }
    }
    at
}

/// The place behind the bracket that closes the one at `at`.
fn after_group(tokens: &[&str], mut at: usize) -> usize {
    let mut depth = 0;
    while let Some(token) = tokens.get(at) {
        at += 1;
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `a.rs <- b.rs: names` of a crate of these files.
    fn ties(files: &[(&str, &str)]) -> Vec<String> {
        let text = |path: &str| {
            let path = path.strip_prefix("src/")?;
            let file = files.iter().find(|(name, _)| *name == path);
            file.map(|(_, text)| *text)
        };
        let read = Crate::read("src/lib.rs", text);
        let short = |file| read.path(file).strip_prefix("src/").unwrap().to_owned();
        let line = |((from, to), names): ((usize, usize), BTreeSet<String>)| {
            let names: Vec<String> = names.into_iter().collect();
            format!("{} <- {}: {}", short(from), short(to), names.join(" "))
        };
        read.ties().into_iter().map(line).collect()
    }

    fn check(a: &str, expected: &[&str]) {
        let lib = "mod a; mod b; mod c; pub use b::Shown; pub use c::deep::Deep;";
        let b = "pub struct B; pub struct Shown; pub const N: u8 = 1; pub use crate::c::C;";
        let c = "pub mod deep; pub struct C;";
        let files = [
            ("lib.rs", lib),
            ("a.rs", a),
            ("b.rs", b),
            ("c.rs", c),
            ("c/deep.rs", "pub struct Deep; pub fn down() {}"),
        ];
        let mut found = ties(&files);
        found.retain(|tie| tie.starts_with("a.rs"));
        assert_eq!(found, expected, "{a}");
    }

    #[test]
    fn imports_and_paths_lead_to_the_file_that_defines() {
        check("use crate::b::B;", &["a.rs <- b.rs: B"]);
        check("use super::b::{B, N as M};", &["a.rs <- b.rs: B N"]);
        check("fn f() -> u8 { crate::b::N }", &["a.rs <- b.rs: N"]);
        check("use crate::b; fn f() { b::B; }", &["a.rs <- b.rs: B b"]);
        check("use crate::{b::{self, B}};", &["a.rs <- b.rs: B b"]);
        check("use crate::b::*; fn f(x: B) {}", &["a.rs <- b.rs: B b"]);
        check("use crate::c::deep::down;", &["a.rs <- c/deep.rs: down"]);
        check(
            "mod inner { fn f() { super::super::b::B; } }",
            &["a.rs <- b.rs: B"],
        );
    }

    #[test]
    fn re_exports_are_followed() {
        check("use crate::Shown;", &["a.rs <- b.rs: Shown"]);
        check("use crate::Deep;", &["a.rs <- c/deep.rs: Deep"]);
        check("use crate::b::C;", &["a.rs <- c.rs: C"]);
        check("use super::*; fn f(x: Shown) {}", &["a.rs <- b.rs: Shown"]);
    }

    #[test]
    fn tests_comments_and_others_do_not_count() {
        check("#[cfg(test)]\nmod tests { use crate::b::B; }", &[]);
        check("#[cfg(test)]\n#[allow(x)]\nuse crate::b::B;", &[]);
        check("struct S { #[cfg(test)] b: crate::b::B, n: u8 }", &[]);
        check("// use crate::b::B;", &[]);
        check("use std::b::B; fn f() { x.b(); }", &[]);
        check("pub(crate) struct A; fn f() { self::A; Self::x(); }", &[]);
        let both = "#[cfg(test)] fn f<A, B>(a: A) { crate::b::B; } use crate::c::C;";
        check(both, &["a.rs <- c.rs: C"]);
    }

    #[test]
    fn a_module_and_those_inside_it_are_not_tied() {
        let parent = ("lib.rs", "mod a; use a::inner::Y; pub struct X;");
        let files = [
            parent,
            ("a.rs", "pub mod inner; use inner::Y; use crate::X;"),
            ("a/inner.rs", "pub struct Y; use crate::X; use super::*;"),
        ];
        assert_eq!(ties(&files), Vec::<String>::new());
    }
}
