//! What the paper compares DPCLO with, beside TCP: the same node under other rules, chosen by
//! [`Scheme`](crate::Scheme).

pub(crate) mod dclo;
pub(crate) mod fusion;
pub mod matching;
