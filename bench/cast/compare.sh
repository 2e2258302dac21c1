#!/bin/bash
# Chappe's cast beside uftp, udpcast, NORM and FLUTE, on the same lossy networks. Needs root, iproute2, nftables, GNU time, and what
# is compared:
#
#   uftp    Debian's package uftp (4.10.2)
#   udpcast Debian's package udpcast (20120424)
#   norm    g++ -O2 -o norm norm.cpp -lnorm         with Debian's libnorm-dev (1.5.9); NORM names the program
#   flute   cargo install flute --features cli      (1.11.7); FLUTE names the folder with flute-sender and flute-receiver
#
#   compare.sh star LOSS% RECEIVERS chappe|uftp|udpcast|norm|flute [MB]     one hop: all hosts on one bridge
#   compare.sh chain LOSS% chappe [MB]                              three lossy segments, joined by two relays
#   compare.sh through LOSS% chappe|uftp|norm|flute [MB]            the same three losses on one hop, and nobody in between
#   compare.sh table [RUNS]                                         all of docs/cast.md, RUNS times each (5), with mean and spread;
#                                                                   tools that are not installed are skipped with a message, and
#                                                                   TOOLS="chappe norm" leaves the others out
#
# Every host sends at most 20 Mbit/s (tbf), and loses the given share of what comes in, feedback as well (nft). One
# line is printed: seconds from the first data frame to the last receiver's file (uftp and NORM: as their sender says it;
# FLUTE, which has no way back: when the last file was there), seconds of the whole command, octets on the sender's wire
# over octets of the file, how many receivers have the file, and the processor's seconds and the most memory of sender and
# first receiver. CHAPPE names the program; OPTIONS are added to each of its commands, SEND_OPTIONS to the sender's. PARITY is
# what FLUTE is told to send more, in per cent: it cannot find out.
set -e
CHAPPE=${CHAPPE:-chappe}
RATE=${RATE:-20}
NORM=${NORM:-norm}
FLUTE=${FLUTE:-}
# What headers of NORM and FLUTE need on top of their rate, so that no queue overflows: 5 %.
NET=$((RATE * 950))

# Which program of a tool is not there, if one is not.
missing() { # TOOL
  local program
  case $1 in
  uftp) set -- uftp uftpd ;;
  udpcast) set -- udp-sender udp-receiver ;;
  norm) set -- "$NORM" ;;
  flute) set -- "${FLUTE:+$FLUTE/}flute-sender" "${FLUTE:+$FLUTE/}flute-receiver" ;;
  *) set -- "$CHAPPE" ;;
  esac
  for program in ip tc nft /usr/bin/time "$@"; do
    command -v "$program" >/dev/null || { echo "$program"; return; }
  done
}

if [ "$1" = table ]; then
  repeat() { # RUNS WORDS...
    local runs=$1 at
    shift
    for at in $(seq "$runs"); do "$0" "$@" | tail -1 | sed "s/$/ run $at/"; done | tee >(cat >&2) |
      awk '{ for (i = 1; i <= NF; i++) { if ($i == "s," && !seen[NR]++) { t = $(i - 1); n++; sum += t; if (n == 1 || t < least) least = t; if (t > most) most = t; sq += t * t }
               if ($i == "complete") { have += $(i + 1); want += $(i + 3) }
               if ($i ~ /^x[0-9]/ && !(NR in wire)) { wire[NR] = substr($i, 2) + 0; w += wire[NR] } }
             name = $0; sub(/:.*/, "", name) }
           END { if (n) printf "= %s: mean %.2f s (%.2f to %.2f, n=%d), wire x%.2f, complete %d of %d\n", name, sum / n, least, most, n, w / n, have, want }'
  }
  row() { # RUNS WORDS... pacifier
    case ${!#} in
    pacifier) SEND_OPTIONS="$SEND_OPTIONS --variant pacifier" repeat "${@:1:$#-1}" chappe | sed 's/chappe:/chappe, --variant pacifier:/' ;;
    *) repeat "$@" ;;
    esac
  }
  runs=${2:-5}
  tools=
  for tool in ${TOOLS:-chappe pacifier norm flute uftp udpcast}; do
    program=$(missing "$tool")
    if [ "$program" ]; then echo "skipped: $tool, because $program is not installed"; else tools="$tools $tool"; fi
  done
  for network in "10 3" "10 10" "30 10"; do
    for tool in $tools; do
      case $network in 10*) export PARITY=16 ;; *) export PARITY=52 ;; esac
      row "$runs" star $network $tool
    done
  done
  for tool in $tools; do
    case $tool in chappe | pacifier) row "$runs" chain 30 $tool ;; esac
  done
  case $tools in *norm*) row "$runs" through 30 norm ;; esac
  exit
fi
W=$(mktemp -d)
pids=()

clean() {
  # By their namespaces: what runs there stands under `time`, which would not pass a signal on.
  for n in $(ip netns list | awk '{print $1}' | grep -E '^cc-'); do ip netns pids "$n" | xargs -r kill 2>/dev/null || true; done
  wait
  for n in $(ip netns list | awk '{print $1}' | grep -E '^cc-'); do ip netns del "$n"; done
  rm -rf "$W"
}
trap clean EXIT

bridge() { # NAME
  ip netns add "cc-$1"
  ip -n "cc-$1" link add br0 type bridge mcast_snooping 0 stp_state 0
  ip -n "cc-$1" link set br0 up
}

host() { # NAME
  ip netns add "cc-$1"
  ip -n "cc-$1" link set lo up
}

attach() { # HOST INTERFACE BRIDGE ADDRESS LOSS%
  ip -n "cc-$3" link add "p-$1-$2" type veth peer name "$2" netns "cc-$1"
  ip -n "cc-$3" link set "p-$1-$2" master br0 up
  ip -n "cc-$1" addr add "$4/24" brd + dev "$2"
  ip -n "cc-$1" link set "$2" up
  ip -n "cc-$1" route add 224.0.0.0/4 dev "$2" 2>/dev/null || true
  if [ "$5" != 0 ]; then
    ip netns exec "cc-$1" nft add table netdev "l$2"
    ip netns exec "cc-$1" nft "add chain netdev l$2 in { type filter hook ingress device $2 priority -300; }"
    ip netns exec "cc-$1" nft add rule netdev "l$2" in numgen random mod 1000 '<' "$(awk -v l="$5" 'BEGIN { printf "%.0f", l * 10 }')" drop
  fi
  ip netns exec "cc-$1" tc qdisc add dev "$2" root tbf rate "${RATE}mbit" burst 16k latency 100ms
}

sent() { ip netns exec cc-s cat /sys/class/net/eth0/statistics/tx_bytes 2>/dev/null ||
  ip -n cc-s -s -j link show eth0 | grep -o '"tx":{"bytes":[0-9]*' | grep -o '[0-9]*$'; }

# Runs the rest and writes its processor time and memory to FILE.
timed() { # FILE COMMAND...
  local file=$1
  shift
  /usr/bin/time -q -o "$file" -f '%U %S %M' "$@"
}

receiver() { # HOST ID
  mkdir -p "$W/$1"
  local run="timed $W/time-$1 ip netns exec cc-$1"
  case $tool in
  uftp)
    mkdir -p "$W/tmp-$1"
    $run uftpd -d -I eth0 -D "$W/$1" -T "$W/tmp-$1" >"$W/log-$1" 2>&1 &
    ;;
  udpcast) $run udp-receiver --interface eth0 --file "$W/$1/file.bin" --nokbd >"$W/log-$1" 2>&1 & ;;
  norm) $run "$NORM" receive eth0 "$2" "$W/$1" >"$W/log-$1" 2>&1 & ;;
  flute) $run "${FLUTE:+$FLUTE/}flute-receiver" -g 224.1.2.3 -i "10.77.0.$2" "$W/$1" >"$W/log-$1" 2>&1 & ;;
  *)
    $run "$CHAPPE" cast receive "$W/$1" -i eth0 --group "$W/k.group" --key "$W/$1.key" \
      --rate "$RATE Mbit/s" $OPTIONS --json >"$W/log-$1" 2>"$W/err-$1" &
    ;;
  esac
  pids+=($!)
}

kind=$1 loss=$2
case $kind in star) program=$(missing "$4") ;; chain | through) program=$(missing "$3") ;; *) program= ;; esac
if [ "$program" ]; then echo "skipped: $program is not installed" >&2; exit 1; fi
case $kind in
star) n=$3 tool=$4 size=${5:-20} ;;
chain) n=1 tool=$3 size=${4:-20} ;;
through) n=1 tool=$3 size=${4:-20} ;;
*) sed -n 2,28p "$0"; exit 2 ;;
esac
head -c $((size * 1000000)) /dev/urandom >"$W/file.bin"
[ "$tool" != chappe ] || "$CHAPPE" cast keygen "$W/k" s x y $(seq -f r%g 1 "$n") >/dev/null
bridge b1
host s
attach s eth0 b1 10.77.0.1 "$([ "$kind" = through ] && awk -v l="$loss" 'BEGIN { print 100 * (1 - (1 - l / 100) ^ 3) }' || echo "$loss")"
if [ "$kind" = through ]; then
  host r1
  attach r1 eth0 b1 10.77.0.2 "$(awk -v l="$loss" 'BEGIN { print 100 * (1 - (1 - l / 100) ^ 3) }')"
elif [ "$kind" = star ]; then
  for i in $(seq 1 "$n"); do host "r$i"; attach "r$i" eth0 b1 10.77.0.$((i + 1)) "$loss"; done
else
  bridge b2; bridge b3
  host x; attach x eth0 b1 10.77.0.100 "$loss"; attach x eth1 b2 10.78.0.100 "$loss"
  host y; attach y eth0 b2 10.78.0.101 "$loss"; attach y eth1 b3 10.79.0.101 "$loss"
  host r1; attach r1 eth0 b3 10.79.0.2 "$loss"
  for relay in x y; do
    ip netns exec cc-$relay "$CHAPPE" cast relay -i eth0 -i eth1 --group "$W/k.group" --key "$W/$relay.key" --rate "$RATE Mbit/s" $OPTIONS --json >"$W/log-$relay" 2>&1 &
    pids+=($!)
  done
fi
for i in $(seq 1 "$n"); do receiver "r$i" $((i + 1)); done
sleep 1
before=$(sent) begun=$(date +%s.%N)
run="timed $W/time-s ip netns exec cc-s"
case $tool in
uftp)
  $run uftp -R $((RATE * 1000)) -I eth0 -b 1400 -S "$W/status" "$W/file.bin" >"$W/log-s" 2>&1 || true
  ended=$(date +%s.%N)
  seconds=$(grep ^STATS "$W/status" | awk -F';' '{print $(NF-1)}' | sort -n | tail -1)
  ;;
udpcast)
  $run timeout 150 udp-sender --interface eth0 --file "$W/file.bin" --min-receivers "$n" --max-bitrate "${NET}k" --nokbd >"$W/log-s" 2>&1 || true
  ended=$(date +%s.%N)
  # It names no times, and receivers make their files before they have data: from the start of the command to its end.
  seconds=$(awk -v b="$begun" -v e="$ended" 'BEGIN { printf "%.2f", e - b }')
  ;;
norm)
  $run timeout 150 "$NORM" send eth0 $((NET * 1000)) "$W/file.bin" "$n" >"$W/log-s" 2>&1 || true
  ended=$(date +%s.%N)
  seconds=$(awk '/^STATS/ { print $2 }' "$W/log-s")
  ;;
flute)
  # The sender does not end when it has sent all: it gets the time that this takes, and three seconds.
  limit=$(awk -v b=$((size * 8000000)) -v p="${PARITY:-16}" -v r=$((NET * 1000)) 'BEGIN { printf "%.0f", b * (1 + p / 100) * 1.05 / r + 3 }')
  $run timeout "$limit" "${FLUTE:+$FLUTE/}flute-sender" -d 224.1.2.3 --bind 10.77.0.1:0 --fec raptorq --source-block-length 1024 \
    --parity-percentage "${PARITY:-16}" --parity-symbols 4000 -b $NET "$W/file.bin" >"$W/log-s" 2>&1 || true
  ended=$(date +%s.%N)
  seconds=$(for i in $(seq 1 "$n"); do stat -c %.Y "$W/r$i/file.bin" 2>/dev/null || true; done | sort -n | tail -1 |
    awk -v b="$begun" '{ printf "%.2f", $1 - b }')
  ;;
*)
  $run "$CHAPPE" cast send "$W/file.bin" -i eth0 --group "$W/k.group" --key "$W/s.key" \
    --rate "$RATE Mbit/s" --receivers "$n" $OPTIONS $SEND_OPTIONS --json >"$W/log-s" 2>"$W/err-s" || true
  ended=$(date +%s.%N)
  seconds=$(grep '"event":"done"' "$W/log-s" | grep -o '"seconds":[0-9.]*' | cut -d: -f2)
  ;;
esac
after=$(sent)
for _ in $(seq 1 40); do
  have=0
  for i in $(seq 1 "$n"); do [ -f "$W/r$i/file.bin" ] && cmp -s "$W/file.bin" "$W/r$i/file.bin" && have=$((have + 1)); done
  [ $have = "$n" ] && break
  sleep 0.25
done
# Whoever still waits is asked to end, so that its time is known.
for _ in 1 2; do ip netns pids cc-r1 2>/dev/null | xargs -r kill 2>/dev/null || true; sleep 0.3; done
used() { # FILE
  awk 'NF == 3 { printf "%.2f s cpu, %.1f MB", $1 + $2, $3 / 1000; found = 1 } END { if (!found) printf "?" }' "$1" 2>/dev/null || echo "?"
}
awk -v k="$kind" -v l="$loss" -v n="$n" -v t="$tool" -v s="$seconds" -v w="$(echo "$ended $begun" | awk '{print $1-$2}')" \
  -v x="$((after - before))" -v f="$((size * 1000000))" -v h="$have" -v us="$(used "$W/time-s")" -v ur="$(used "$W/time-r1")" \
  'BEGIN { printf "%s %s %% lost, %d receivers, %s: %.2f s, whole command %.1f s, wire x%.2f, complete %d of %d, sender %s, receiver %s\n", k, l, n, t, s, w, x/f, h, n, us, ur }'
