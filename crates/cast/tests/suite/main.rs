//! Members without a link under them.

mod asked;
mod insider;
mod member;
