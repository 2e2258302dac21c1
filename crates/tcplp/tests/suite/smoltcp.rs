//! This TCP and smoltcp over a bad network, in virtual time.

use crate::support;

use crate::rival;

use chappe_core::{Duration, HostNode, Instant, Purpose, Seed, Stream, Wake};
use chappe_tcplp::tcp::congestion::Any;
use chappe_tcplp::tcp::{Config, Endpoint, NewReno, State};

use rival::Rival;
use support::host::{Host, Sizes, address};
use support::network::{Air, Faults};

const PORT: u16 = 80;
const CLIENT: u16 = 50_000;

fn stream(random: &mut Stream, len: usize) -> Vec<u8> {
    let mut data = vec![0; len];
    random.fill(&mut data);
    data
}

/// A transfer in both directions between the two, one of which opens the connection.
struct Talk {
    ours: Host,
    rival: Rival,
    air: Air,
    now: Instant,
    /// What each sends, ours first; how far it is written; what the other has read.
    data: [Vec<u8>; 2],
    written: [usize; 2],
    read: [Vec<u8>; 2],
}

impl Talk {
    fn new(seed: u64, faults: Faults) -> Talk {
        let mut random = Seed(seed).stream(Purpose::Trial(3));
        let mss = [100, 462, 1000][random.below(3) as usize];
        let mut buffer = || mss * (2 + random.below(7) as usize);
        let (sizes, buffers) = (
            Sizes {
                send: buffer(),
                receive: buffer(),
                ..Sizes::default()
            },
            [buffer(), buffer()],
        );
        let config = Config {
            mss: mss as u16,
            retries_max: 40,
            syn_retries_max: 40,
            time_wait: Duration::from_secs(1),
            rto_max: Duration::from_secs(20),
            ..Config::STANDARD
        };
        let mut ours = Host::new(1, config, sizes, Any::NewReno(NewReno));
        let mut rival = Rival::new(address(2), address(1), buffers, mss);
        let now = Instant::from_millis(1);
        if random.chance(0.5) {
            rival.listen(PORT);
            ours.connect(now, CLIENT, Endpoint::new(address(2), PORT));
        } else {
            ours.listen(PORT, 1);
            rival.connect(CLIENT, PORT);
        }
        let lens = [0, 1].map(|_| 1 + random.below(8_000) as usize);
        Talk {
            ours,
            rival,
            air: Air::new(faults, seed),
            now,
            data: lens.map(|len| stream(&mut random, len)),
            written: [0, 0],
            read: [Vec::new(), Vec::new()],
        }
    }

    /// Both applications: write what fits, read what is there, close when all is written.
    fn serve(&mut self) {
        let mut buffer = [0; 4096];
        if let Some(socket) = self.ours.sockets.first_mut() {
            self.written[0] += socket.write(&self.data[0][self.written[0]..]);
            let len = socket.read(&mut buffer);
            self.read[1].extend_from_slice(&buffer[..len]);
            let open = matches!(socket.state(), State::Established | State::CloseWait);
            if self.written[0] == self.data[0].len() && open {
                socket.shutdown();
            }
        }
        let rival = &mut self.rival;
        self.written[1] += rival.write(&self.data[1][self.written[1]..]);
        let len = rival.read(&mut buffer);
        self.read[0].extend_from_slice(&buffer[..len]);
        if self.written[1] == self.data[1].len() && rival.socket().may_send() {
            rival.socket().close();
        }
    }

    fn turn(&mut self) {
        self.serve();
        let mut buffer = [0; 2048];
        while let Some(len) = self.ours.poll_packet(self.now, &mut buffer) {
            self.air.fly(self.now, 1, buffer[..len].to_vec());
        }
        self.rival.work(self.now);
        while let Some(packet) = self.rival.packet() {
            self.air.fly(self.now, 0, packet);
        }
    }

    /// To the end, or for a day.
    fn run(&mut self) {
        let limit = self.now + Duration::from_secs(24 * 3600);
        for _ in 0..200_000 {
            self.turn();
            let wakes = [
                self.air.next(),
                self.ours.poll_timeout().map(|wake: Wake| wake.at),
            ];
            let wakes = wakes
                .into_iter()
                .chain([self.rival.next(self.now)])
                .flatten();
            let Some(next) = wakes.min().filter(|&at| at < limit) else {
                return;
            };
            self.now = self.now.max(next);
            while let Some((to, packet)) = self.air.land(self.now) {
                match to {
                    0 => self.ours.handle_packet(self.now, &packet),
                    _ => self.rival.hand(self.now, &packet),
                }
                self.turn();
            }
            self.ours.handle_timeout(self.now);
        }
    }
}

/// Both stacks accept acknowledgements and data in any order that a network produces.
#[test]
fn streams_arrive_whole_between_the_two() {
    for seed in 0..300 {
        let mut random = Seed(seed).stream(Purpose::Trial(4));
        let faults = Faults {
            loss: [0.0, 0.01, 0.06, 0.21][random.below(4) as usize],
            duplicate: [0.0, 0.05][random.below(2) as usize],
            reorder: [0.0, 0.1, 0.5][random.below(3) as usize],
            corrupt: [0.0, 0.03][random.below(2) as usize],
            delay: Duration::from_millis(1 + random.below(200)),
            jitter: Duration::from_millis(1 + random.below(400)),
            ..Faults::default()
        };
        let mut talk = Talk::new(seed, faults);
        talk.run();
        let state = talk
            .ours
            .sockets
            .first()
            .map(|s| (s.state(), s.failure(), s.info()));
        for (side, data) in talk.data.iter().enumerate() {
            let (read, wanted) = (talk.read[side].len(), data.len());
            assert!(
                talk.read[side] == *data,
                "seed {seed}, {faults:?}: direction {side}: {read} octets of {wanted} at {}; {state:#?}, \
                 smoltcp {:?}",
                talk.now,
                talk.rival.state()
            );
        }
    }
}
