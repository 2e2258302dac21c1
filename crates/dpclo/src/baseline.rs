//! The schemes that the paper compares DPCLO with, other than TCP: the same node under other rules, chosen by
//! [`Scheme`](crate::Scheme).

pub(crate) mod dclo;
pub(crate) mod fusion;
pub mod matching;
