//! The commented scenario that `chappe new` writes.

/// A runnable scenario with comments on the keys that users change first.
pub const TEMPLATE: &str = r#"# A Chappe scenario. Run it:          chappe sim THIS-FILE
# All keys, for your editor:          chappe sim --schema > chappe.schema.json
#:schema ./chappe.schema.json

title = "one object to five receivers over a random mesh"

[network]
generator = "random"            # or "grid", "line", "clustered"; or give positions, links, or a file
nodes = 30
area = ["700 m", "700 m"]
# seed = 7                      # fixes the network for all seeds of the run
# file = "map.json"             # NetJSON, meshviewer.json, or a CSV list with columns src,dst,pdr
# links = [[0, 0.9], [0.8, 0]]  # delivery ratios, from each node (row) to each node (column)

[radio]
profile = "chappe-physical"     # or "ns3-yans", "glomosim", "ns2-threshold"
rate = "2 Mbit/s"               # 1, 2, 5.5 or 11
tx_power = "15 dBm"
# fading = "rayleigh"           # or "none", "rician", "glomosim"
# shadowing = "4 dB"

[mac]
# rts_threshold = "500 B"       # default: no RTS
# retry_short = 7

[protocol]
system = "pacifier"
variant = "paper"               # or the baselines "more", "tree", "tree-rl", or "improved"
# knob = 1.0                    # credits for the best child (0) up to every child (1)
# batch = 32                    # packets coded together
# payload = "1500 B"
# probing = "600 s"             # duration of the link measurement before the transfer

[[transfer]]
source = 0
receivers = 5                   # number of receivers, drawn at random; or a list such as [3, 7, 12]
bytes = "500 kB"                # or object = "FILE"

# [[fault]]                     # a fault; times count from the start of the transfer
# at = "5 s"
# kind = "crash"                # or restart, cut-link, restore-link, drift, corrupt, jammer
# node = 4

[run]
seed = 1
repeat = 1                      # runs, each with the next seed
# limit = "1000 s"              # the run ends at this time, finished or not
"#;

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_scenario::format::Source;
    use chappe_scenario::plan::Changes;
    use chappe_scenario::{InputError, Plan};

    use crate::systems::scenarios;

    #[test]
    fn the_template_is_a_valid_scenario() {
        let source = Source::new("new.toml", TEMPLATE, &[]);
        let plan = Plan::new(&scenarios(), source, &Changes::default()).unwrap();
        assert_eq!(plan.topology.nodes(), 30);
        assert!(plan.network(1).is_ok());
    }

    /// Every commented key must be right too: without the `# ` in front, the file still parses.
    #[test]
    fn what_is_commented_out_is_valid_too() {
        for line in TEMPLATE
            .lines()
            .filter(|line| line.starts_with("# ") && line.contains(" = "))
        {
            let text = line.trim_start_matches("# ");
            let known = text.starts_with("links")
                || text.starts_with("file")
                || text.starts_with("at ")
                || text.starts_with("kind")
                || text.starts_with("node ")
                || text.starts_with("seed");
            if known {
                continue;
            }
            let whole = TEMPLATE.replace(line, text);
            let source = Source::new("new.toml", &whole, &[]);
            let plan: Result<_, InputError> = Plan::new(&scenarios(), source, &Changes::default());
            // The knob's own key is checked against the variant, shadowing against nothing.
            assert!(plan.is_ok(), "{text}: {:?}", plan.err());
        }
    }
}
