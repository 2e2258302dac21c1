//! Our addresses are those of Nordic's description.

use chappe_nrf52840::{PPI, ecb, ppi_event, ppi_task, radio, timer};
use nrf_pac::{ECB, PPI as THEIR_PPI, RADIO, TIMER3};

#[test]
fn registers_are_where_nordic_says() {
    macro_rules! same {
        ($($ours:expr => $theirs:expr),* $(,)?) => {
            $(assert_eq!($ours as usize, $theirs.as_ptr() as usize, stringify!($ours));)*
        };
    }
    same! {
        radio::TASKS_TXEN => RADIO.tasks_txen(),
        radio::TASKS_RXEN => RADIO.tasks_rxen(),
        radio::TASKS_START => RADIO.tasks_start(),
        radio::TASKS_DISABLE => RADIO.tasks_disable(),
        radio::TASKS_RSSISTART => RADIO.tasks_rssistart(),
        radio::EVENTS_END => RADIO.events_end(),
        radio::EVENTS_DISABLED => RADIO.events_disabled(),
        radio::EVENTS_BCMATCH => RADIO.events_bcmatch(),
        radio::EVENTS_FRAMESTART => RADIO.events_framestart(),
        radio::EVENTS_TXREADY => RADIO.events_txready(),
        radio::EVENTS_RXREADY => RADIO.events_rxready(),
        radio::EVENTS_PHYEND => RADIO.events_phyend(),
        radio::SHORTS => RADIO.shorts(),
        radio::INTENSET => RADIO.intenset(),
        radio::CRCSTATUS => RADIO.crcstatus(),
        radio::PACKETPTR => RADIO.packetptr(),
        radio::FREQUENCY => RADIO.frequency(),
        radio::TXPOWER => RADIO.txpower(),
        radio::MODE => RADIO.mode(),
        radio::PCNF0 => RADIO.pcnf0(),
        radio::PCNF1 => RADIO.pcnf1(),
        radio::CRCCNF => RADIO.crccnf(),
        radio::CRCPOLY => RADIO.crcpoly(),
        radio::CRCINIT => RADIO.crcinit(),
        radio::RSSISAMPLE => RADIO.rssisample(),
        radio::BCC => RADIO.bcc(),
        radio::MODECNF0 => RADIO.modecnf0(),
        radio::POWER => RADIO.power(),
        timer::TASKS_START => TIMER3.tasks_start(),
        timer::TASKS_CLEAR => TIMER3.tasks_clear(),
        timer::INTENSET => TIMER3.intenset(),
        timer::MODE => TIMER3.mode(),
        timer::BITMODE => TIMER3.bitmode(),
        timer::PRESCALER => TIMER3.prescaler(),
        timer::capture(5) => TIMER3.tasks_capture(5),
        timer::compare(5) => TIMER3.events_compare(5),
        timer::cc(5) => TIMER3.cc(5),
        ecb::TASKS_STARTECB => ECB.tasks_startecb(),
        ecb::EVENTS_ENDECB => ECB.events_endecb(),
        ecb::EVENTS_ERRORECB => ECB.events_errorecb(),
        ecb::ECBDATAPTR => ECB.ecbdataptr(),
        PPI + 0x504 => THEIR_PPI.chenset(),
        PPI + 0x508 => THEIR_PPI.chenclr(),
        ppi_event(3) => THEIR_PPI.ch(3).eep(),
        ppi_task(3) => THEIR_PPI.ch(3).tep(),
    }
}

/// Bits and values that the driver writes, by their names in Nordic's description.
#[test]
fn bits_are_what_nordic_says() {
    use nrf_pac::radio::{regs, vals};
    let mut shorts = regs::Shorts(0);
    shorts.set_disabled_txen(true);
    shorts.set_disabled_rxen(true);
    shorts.set_framestart_bcstart(true);
    shorts.set_txready_start(true);
    shorts.set_rxready_start(true);
    use radio::short::{
        DISABLED_RXEN, DISABLED_TXEN, FRAMESTART_BCSTART, RXREADY_START, TXREADY_START,
    };
    let ours = DISABLED_RXEN | DISABLED_TXEN | FRAMESTART_BCSTART | RXREADY_START | TXREADY_START;
    assert_eq!(shorts.0, ours);

    let mut interrupts = regs::Int(0);
    interrupts.set_end(true);
    interrupts.set_bcmatch(true);
    interrupts.set_framestart(true);
    interrupts.set_rxready(true);
    interrupts.set_phyend(true);
    use radio::interrupt::{BCMATCH, END, FRAMESTART, PHYEND, RXREADY};
    assert_eq!(interrupts.0, END | BCMATCH | FRAMESTART | RXREADY | PHYEND);
    assert_eq!(vals::Mode::Ieee802154250kbit.to_bits(), 15);
    let mut first = regs::Pcnf0(0);
    first.set_lflen(8);
    first.set_plen(vals::Plen::_32bitZero);
    first.set_crcinc(vals::Crcinc::Include);
    assert_eq!(first.0, 8 | 2 << 24 | 1 << 26);
    let mut check = regs::Crccnf(0);
    check.set_len(vals::Len::Two);
    check.set_skipaddr(vals::Skipaddr::Ieee802154);
    assert_eq!(check.0, 2 | 2 << 8);
}
