#!/bin/sh
# Two uplinks as one link, in namespaces of this machine: no root, no configuration. Needs iproute2 and iperf3, and `chappe` on the
# PATH. `home` has two uplinks to `server`, 10 Mbit/s each.
#
# usage: bench/link/bonded.sh
set -e
[ "$1" = inside ] || exec unshare -Urnm --kill-child -pf --mount-proc sh "$0" inside

mount -t tmpfs none /run
folder=/run/bonded
mkdir $folder
cd $folder

ip netns add home
ip netns add server
for n in 0 1; do
    ip link add eth$n netns home type veth peer name eth$n netns server
    ip -n home address add 192.0.$n.1/24 dev eth$n
    ip -n server address add 192.0.$n.7/24 dev eth$n
    for host in home server; do
        ip -n $host link set eth$n up
        ip netns exec $host tc qdisc add dev eth$n root tbf rate 10mbit burst 3000 latency 50ms
    done
done

chappe link key new home.key >/dev/null 2>&1
chappe link key new server.key >/dev/null 2>&1
cat >home.toml <<EOF
[link]
key_file = "home.key"
address = "10.9.0.1/24"
listen = "0.0.0.0:1795"
status = "/run/home.sock"

[[peer]]
name = "server"
public_key = "$(chappe link key public server.key | sed 's/.* //')"
networks = ["10.9.0.2/32"]

[[peer.path]]
name = "dsl"
interface = "eth0"
endpoint = "192.0.0.7:1795"
rate = "10 Mbit/s"

[[peer.path]]
name = "lte"
interface = "eth1"
endpoint = "192.0.1.7:1795"
rate = "10 Mbit/s"
EOF
cat >server.toml <<EOF
[link]
key_file = "server.key"
address = "10.9.0.2/24"
listen = "0.0.0.0:1795"
status = "/run/server.sock"

[[peer]]
name = "home"
public_key = "$(chappe link key public home.key | sed 's/.* //')"
networks = ["10.9.0.1/32"]
EOF

# Runs a command on `home` and prints it.
at_home() {
    echo "home# $*"
    ip netns exec home "$@"
}

ip netns exec server chappe link run server.toml >server.log 2>&1 &
ip netns exec home chappe link run home.toml >home.log 2>&1 &
ip netns exec server iperf3 -s >/dev/null &
sleep 3
at_home iperf3 -c 192.0.0.7 -t 5 -f m | grep -e '#' -e receiver
at_home iperf3 -c 10.9.0.2 -t 5 -f m | grep -e '#' -e receiver
at_home chappe link status --socket /run/home.sock
(sleep 3 && at_home ip link set eth0 down) &
at_home iperf3 -c 10.9.0.2 -t 8 -f m | grep -e '#' -e '[0-9]-' | cut -c 1-48
at_home chappe link status --socket /run/home.sock
