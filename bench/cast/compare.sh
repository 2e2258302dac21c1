#!/bin/bash
# Chappe's cast beside uftp, on the same lossy networks. Needs root, iproute2, nftables; uftp where it is compared.
#
#   compare.sh star LOSS% RECEIVERS chappe|uftp [MB]     one hop: all hosts on one bridge
#   compare.sh chain LOSS% chappe [MB]                   three lossy segments, joined by two relays
#
# Every host sends at most 20 Mbit/s (tbf), and loses the given share of what comes in, feedback as well (nft). One
# line is printed: seconds from the first data frame to the last receiver's file (uftp: its own STATS line), seconds
# of the whole command, octets on the sender's wire over octets of the file, and how many receivers have the file.
# CHAPPE names the program; OPTIONS are added to each of its commands, SEND_OPTIONS to the sender's.
set -e
CHAPPE=${CHAPPE:-chappe}
RATE=${RATE:-20}
W=$(mktemp -d)
pids=()

clean() {
  [ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
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
  if [ "$5" != 0 ]; then
    ip netns exec "cc-$1" nft add table netdev "l$2"
    ip netns exec "cc-$1" nft "add chain netdev l$2 in { type filter hook ingress device $2 priority -300; }"
    ip netns exec "cc-$1" nft add rule netdev "l$2" in numgen random mod 1000 '<' $(($5 * 10)) drop
  fi
  ip netns exec "cc-$1" tc qdisc add dev "$2" root tbf rate "${RATE}mbit" burst 16k latency 100ms
}

sent() { ip netns exec cc-s cat /sys/class/net/eth0/statistics/tx_bytes 2>/dev/null ||
  ip -n cc-s -s -j link show eth0 | grep -o '"tx":{"bytes":[0-9]*' | grep -o '[0-9]*$'; }

receiver() { # HOST
  mkdir -p "$W/$1"
  if [ "$tool" = uftp ]; then
    mkdir -p "$W/tmp-$1"
    ip -n "cc-$1" route add 224.0.0.0/4 dev eth0
    ip netns exec "cc-$1" uftpd -d -I eth0 -D "$W/$1" -T "$W/tmp-$1" >"$W/log-$1" 2>&1 &
  else
    ip netns exec "cc-$1" "$CHAPPE" cast receive "$W/$1" -i eth0 --key "$W/k.group" --verify "$W/k.verify" \
      --rate "$RATE Mbit/s" $OPTIONS --json >"$W/log-$1" 2>"$W/err-$1" &
  fi
  pids+=($!)
}

kind=$1 loss=$2
case $kind in
star) n=$3 tool=$4 size=${5:-20} ;;
chain) n=1 tool=$3 size=${4:-20} ;;
*) sed -n 2,12p "$0"; exit 2 ;;
esac
head -c $((size * 1000000)) /dev/urandom >"$W/file.bin"
[ "$tool" = uftp ] || "$CHAPPE" cast keygen "$W/k" >/dev/null
bridge b1
host s
attach s eth0 b1 10.77.0.1 "$loss"
if [ "$kind" = star ]; then
  for i in $(seq 1 "$n"); do host "r$i"; attach "r$i" eth0 b1 10.77.0.$((i + 1)) "$loss"; done
else
  bridge b2; bridge b3
  host x; attach x eth0 b1 10.77.0.100 "$loss"; attach x eth1 b2 10.78.0.100 "$loss"
  host y; attach y eth0 b2 10.78.0.101 "$loss"; attach y eth1 b3 10.79.0.101 "$loss"
  host r1; attach r1 eth0 b3 10.79.0.2 "$loss"
  for relay in x y; do
    ip netns exec cc-$relay "$CHAPPE" cast relay -i eth0 -i eth1 --key "$W/k.group" --rate "$RATE Mbit/s" $OPTIONS --json >"$W/log-$relay" 2>&1 &
    pids+=($!)
  done
fi
for i in $(seq 1 "$n"); do receiver "r$i"; done
sleep 1
before=$(sent) begun=$(date +%s.%N)
if [ "$tool" = uftp ]; then
  ip -n cc-s route add 224.0.0.0/4 dev eth0
  ip netns exec cc-s uftp -R $((RATE * 1000)) -I eth0 -b 1400 -S "$W/status" "$W/file.bin" >"$W/log-s" 2>&1 || true
  ended=$(date +%s.%N)
  seconds=$(grep ^STATS "$W/status" | awk -F';' '{print $(NF-1)}' | sort -n | tail -1)
else
  ip netns exec cc-s "$CHAPPE" cast send "$W/file.bin" -i eth0 --key "$W/k.group" --sign "$W/k.sign" \
    --rate "$RATE Mbit/s" --receivers "$n" $OPTIONS $SEND_OPTIONS --json >"$W/log-s" 2>"$W/err-s" || true
  ended=$(date +%s.%N)
  seconds=$(grep '"event":"done"' "$W/log-s" | grep -o '"seconds":[0-9.]*' | cut -d: -f2)
fi
after=$(sent)
for _ in $(seq 1 40); do
  have=0
  for i in $(seq 1 "$n"); do [ -f "$W/r$i/file.bin" ] && cmp -s "$W/file.bin" "$W/r$i/file.bin" && have=$((have + 1)); done
  [ $have = "$n" ] && break
  sleep 0.25
done
awk -v k="$kind" -v l="$loss" -v n="$n" -v t="$tool" -v s="$seconds" -v w="$(echo "$ended $begun" | awk '{print $1-$2}')" \
  -v x="$((after - before))" -v f="$((size * 1000000))" -v h="$have" \
  'BEGIN { printf "%s %s %% lost, %d receivers, %s: %.2f s, whole command %.1f s, wire x%.2f, complete %d of %d\n", k, l, n, t, s, w, x/f, h, n }'
