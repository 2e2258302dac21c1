#!/bin/bash
# What a cast costs in processor time and memory at sender, relay and receiver. Needs root, iproute2 and GNU time.
#
#   cost.sh MB RATE_MBIT [relay]
#
# One bridge without losses. With `relay` the receiver does not hear the sender, and a third host passes on. The file is
# sparse: what it costs does not depend on what is in it. A line for each role: the processor's seconds, microseconds for
# each frame that it sent or received (by the kernel's counters), and the most memory.
set -e
CHAPPE=${CHAPPE:-chappe}
size=$1 rate=$2 relay=$3
W=$(mktemp -d)
clean() {
  for n in s x r b; do ip netns pids "cc-$n" 2>/dev/null | xargs -r kill 2>/dev/null || true; done
  wait
  for n in s x r b; do ip netns del "cc-$n" 2>/dev/null || true; done
  rm -rf "$W"
}
trap clean EXIT
ip netns add cc-b
ip -n cc-b link add br0 type bridge mcast_snooping 0 stp_state 0
ip -n cc-b link set br0 up
number=0 place=0 counted=()
for n in s x r; do
  number=$((number + 1))
  ip netns add cc-$n
  ip -n cc-b link add p-$n type veth peer name eth0 netns cc-$n
  ip -n cc-b link set p-$n master br0 up
  ip -n cc-$n addr add 10.77.0.$number/24 brd + dev eth0
  ip -n cc-$n link set eth0 up
done
truncate -s "${size}000000" "$W/file.bin"
"$CHAPPE" cast keygen "$W/k" s x r >/dev/null
mkdir "$W/to"
common="-i eth0 --group $W/k.group --rate ${rate}Mbit/s --memory 8MB $OPTIONS --quiet"
deaf() { [ -z "$relay" ] || echo "--lose $1=1"; }
cast() { # HOST WORDS...
  local host=$1
  shift
  /usr/bin/time -q -o "$W/time-$host" -f '%U %S %M' ip netns exec "cc-$host" "$CHAPPE" cast "$@" $common
}
count() { ip -n "cc-$1" -s -j link show eth0 | grep -o '"packets":[0-9]*' | grep -o '[0-9]*' | paste -sd" "; }
cast r receive "$W/to" --key "$W/r.key" $(deaf 1) >"$W/said-r" 2>&1 &
[ -z "$relay" ] || cast x relay --key "$W/x.key" >"$W/said-x" 2>&1 &
sleep 0.5
cast s send "$W/file.bin" --key "$W/s.key" $SEND_OPTIONS $(deaf 3) | sed 's/^/  /'
for host in s x r; do counted[$((++place))]=$(count $host); done
for _ in $(seq 100); do [ -s "$W/time-r" ] && break; sleep 0.1; done
ip netns pids cc-x | xargs -r kill 2>/dev/null || true
sleep 0.5
cmp "$W/file.bin" "$W/to/file.bin" && echo "  the copy is right"
place=0
for host in s x r; do
  place=$((place + 1))
  [ -s "$W/time-$host" ] || continue
  role=$(case $host in s) echo sender ;; x) echo relay ;; r) echo receiver ;; esac)
  echo "$role $(cat "$W/time-$host") ${counted[$place]}" |
    awk '{ printf "%-9s %.2f s of processor, %.1f us for each of %d frames, %.1f MB at most\n", $1, $2 + $3, ($2 + $3) * 1e6 / ($5 + $6), $5 + $6, $4 / 1000 }'
done
