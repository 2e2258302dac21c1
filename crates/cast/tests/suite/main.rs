//! Members without a link under them.

mod insider;
mod member;
