//! The three outdoor links of Table 1 (4.2), and the paper's throughput on them.

/// Length in km, and the share of frames lost.
pub const LINKS: [(f64, f64); 3] = [(8.0, 0.034), (45.0, 0.026), (65.0, 0.010)];
/// The paper's TCP throughput in Mbit/s: of 802.11 and of WiLDNet, each one way and both ways, by link.
pub const PAPER: [[[f64; 3]; 2]; 2] = [
    [[5.03, 3.62, 2.80], [4.95, 3.52, 0.68]],
    [[3.65, 3.10, 2.98], [5.86, 4.91, 5.51]],
];
