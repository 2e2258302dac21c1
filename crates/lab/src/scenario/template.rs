//! The commented scenario that `chappe new` writes.

/// A scenario that runs as it is, with a comment on every key that people change first.
pub const TEMPLATE: &str = r#"#:schema ./chappe.schema.json
"#;
