//! The assumption that a multicast bound makes about the medium.

/// Which transmissions must not overlap: outer regions of what a medium can carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Medium {
    /// One radio per node, which at any time sends one frame, receives one, or rests. Holds for any
    /// MAC, with any interference, as long as no radio takes in several frames at once. The gap of
    /// the network does not count.
    OneRadio,
    /// No node begins a frame while it senses another or within the gap after it: for every set of
    /// nodes, the airtime that all of the set (or all but a few) sense adds up to at most 1 (or a
    /// few more; see [`crate::sensing`]). Holds for carrier-sense MACs; backoff ties can exceed it
    /// slightly. Without fading the sets that matter are the cliques of the sensing graph; with
    /// fading they are searched for.
    CarrierSense,
    /// Both at once: the tightest constraint that a carrier-sense MAC with one radio per node obeys
    /// when sensing is random.
    CarrierSenseOneRadio,
    /// Carrier sense in its strictest form: transmissions happen in independent sets of the sensing
    /// graph, whose pairs count as if they *always* sensed each other (Jain, Padhye, Padmanabhan,
    /// Qiu, MobiCom 2003). Without fading at most as large as `CarrierSense`, equal on perfect
    /// graphs; slower: every round finds a heaviest independent set.
    IndependentSets,
}
