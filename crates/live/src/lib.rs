//! Medium 3: a link node on a real network interface.
