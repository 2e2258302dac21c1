#!/bin/sh
# The table of docs/link.md: kernel TCP with and without `chappe link` on a lossy half-duplex medium of 6 Mbit/s and 20 ms, in
# namespaces. Some fifteen minutes; each number is the mean of three runs, with a 95 % interval.
#
#   bench/link/table.sh [SECONDS [RUNS [ROW [LOSSES]]]]     ROW: a part of a row's name, for that row alone; LOSSES: 20,30
set -eu
cd "$(dirname "$0")/../.."
echo "# $(uname -sr), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg), $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
cargo build --quiet --release -p chappe-link --example loss_table
# Before all ordinary programs, if that is allowed: what else the machine does should not count.
first="chrt --fifo 1"
$first true 2>/dev/null || { first=; echo "# no real-time priority: other programs on this machine count"; }
exec $first "${CARGO_TARGET_DIR:-target}/release/examples/loss_table" "${1:-4}" "${2:-3}" "${3:-}" "${4:-}"
