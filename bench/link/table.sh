#!/bin/sh
# The table of docs/link.md: kernel TCP with and without `chappe link` on a lossy half-duplex medium of 6 Mbit/s and 20 ms, in
# namespaces. Some twenty minutes; each number is the mean of three runs, with a 95 % interval.
#
#   bench/link/table.sh [SECONDS [RUNS [ROW]]]     ROW: a part of a row's name, for that row alone
set -eu
cd "$(dirname "$0")/../.."
echo "# $(uname -sr), $(nproc) processors, load $(cut -d' ' -f1 /proc/loadavg), $(git rev-parse --short HEAD 2>/dev/null || echo unknown)"
exec cargo run --quiet --release -p chappe-link --example loss_table -- "${1:-6}" "${2:-3}" "${3:-}"
