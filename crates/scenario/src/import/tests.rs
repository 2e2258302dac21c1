use std::path::PathBuf;

use super::*;

fn map(text: &str, select: &[(&str, &str)]) -> Result<Map, InputError> {
    let select = select
        .iter()
        .map(|(k, v)| (k.to_string(), v.to_string()))
        .collect();
    let reading = Reading {
        select,
        undirected: false,
    };
    parse(&FileText::of(text), &reading)
}

impl Map {
    fn between(&self, from: &str, to: &str) -> f64 {
        let place = |name: &str| self.names.iter().position(|n| n == name).unwrap();
        self.delivery[place(from) * self.names.len() + place(to)]
    }
}

#[test]
fn link_lists_with_every_kind_of_column() {
    let plain = map("src,dst,pdr\n10,2,0.5\n2,10,0.25\n10,2,1.0\n", &[]).unwrap();
    assert_eq!(plain.names, ["2", "10"]);
    assert_eq!(
        (plain.between("10", "2"), plain.between("2", "10")),
        (0.75, 0.25)
    );

    let k7 = "{\"node_count\": 2}\ndatetime,src,dst,channel,mean_rssi,pdr,tx_count\nt,0,1,11,-70,0.9,100\nt,0,1,12,-70,0.1,100\n";
    assert_eq!(
        map(k7, &[("channel", "12")]).unwrap().between("0", "1"),
        0.1
    );

    let mercator = map(
        "src,dst,channel,pdr_pct,mean_rssi_dbm\n0,1,11,120,-91\n",
        &[],
    )
    .unwrap();
    assert_eq!(mercator.between("0", "1"), 1.0);

    let wide = map("src,dst,pdr11,pdr12\n0,1,100,40\n", &[("channel", "12")]).unwrap();
    assert_eq!(wide.between("0", "1"), 0.4);

    let orbit = map(
        "noise_dbm,tx,rx,n_received_of_300\n-5,1-2,1-4,150\n0,1-2,1-4,0\n",
        &[("noise_dbm", "-5")],
    );
    assert_eq!(orbit.unwrap().between("1-2", "1-4"), 0.5);

    let freifunk = "src,dst,type,tq_fwd,tq_rev\n1,2,wifi,0.5,0.25\n2,3,vpn,1,\n1,3,wifi,,\n";
    let wifi = map(freifunk, &[("type", "wifi")]).unwrap();
    assert_eq!(
        (wifi.between("1", "2"), wifi.between("2", "1")),
        (0.5, 0.25)
    );
    assert_eq!(wifi.names, ["1", "2"]);
    assert_eq!(map(freifunk, &[]).unwrap().between("3", "2"), 1.0);
}

#[test]
fn broken_lists_are_refused_with_their_place() {
    let error = map("src,dst,pdr\n0,1,0.5\n0,1,often\n", &[]).unwrap_err();
    assert_eq!(error.line_column(), Some((3, 5)));
    assert_eq!(
        map("src,dst,pdr\n0,1\n", &[]).unwrap_err().line_column(),
        Some((2, 1))
    );
    assert_eq!(
        map("src,pdr\n", &[]).unwrap_err().message,
        "no column says who receives"
    );
    let error = map("src,dst,pdr,channel\n", &[("chanel", "1")]).unwrap_err();
    assert_eq!(error.help.clone().unwrap(), "did you mean `channel`?");
    assert!(
        map("src,dst,pdr\n", &[])
            .unwrap_err()
            .message
            .contains("no link")
    );
    assert!(map("", &[]).unwrap_err().message.contains("empty"));
}

/// Where a field stands, whatever blanks are around it.
#[test]
fn a_broken_field_is_pointed_at() {
    let error = map("src, dst, pdr\na, b, 0.5\nb, c,  zz\n", &[]).unwrap_err();
    let place = error.place.clone().unwrap();
    assert_eq!(&place.text[place.span], "zz");
    assert_eq!(error.line_column(), Some((3, 8)));
}

/// A list with one direction for each pair says so, and is completed only if it is said to be undirected.
#[test]
fn a_missing_direction_is_not_guessed() {
    let list = "src,dst,pdr\na,b,0.5\nc,b,0.25\n";
    let read = |text: &str, undirected| {
        let reading = Reading {
            undirected,
            ..Reading::default()
        };
        parse(&FileText::of(text), &reading).unwrap()
    };
    let directed = read(list, false);
    assert_eq!(directed.directions, Directions { both: 0, one: 2 });
    assert_eq!(directed.between("b", "a"), 0.0);
    let undirected = read(list, true);
    assert_eq!(undirected.between("b", "a"), 0.5);
    assert_eq!(undirected.between("b", "c"), 0.25);
    // What the list gives is kept, a ratio of zero too.
    let both = read(&format!("{list}b,a,0\n"), true);
    assert_eq!(both.directions, Directions { both: 1, one: 1 });
    assert_eq!(
        (both.between("b", "a"), both.between("b", "c")),
        (0.0, 0.25)
    );
}

/// With channels kept apart, each channel is completed by itself, with its power.
#[test]
fn a_missing_direction_of_a_channel() {
    let list = "src,dst,channel,pdr,rssi\na,b,11,0.5,-80\nb,a,11,0.25,-81\na,b,12,1,-70\n";
    let read = |undirected| {
        let reading = Reading {
            undirected,
            ..Reading::default()
        };
        let channels = links::parse_channels(&FileText::of(list), &reading);
        channels.unwrap().unwrap()
    };
    let directed = read(false);
    assert_eq!(directed.directions, Directions { both: 1, one: 1 });
    assert_eq!(directed.link(12, 1, 0), None);
    let undirected = read(true);
    assert_eq!(undirected.link(11, 1, 0), Some((0.25, Some(-81.0))));
    assert_eq!(undirected.link(12, 1, 0), Some((1.0, Some(-70.0))));
}

/// `07` and `7` are two nodes, and keep their names.
#[test]
fn names_are_not_changed() {
    let map = map("src,dst,pdr\n07,7,0.5\n0,+7,0.25\n", &[]).unwrap();
    assert_eq!(map.names, ["0", "7", "+7", "07"]);
    assert_eq!(map.between("07", "7"), 0.5);
}

/// A channel that there is not would stand for all of them, or for none.
#[test]
fn channels_are_those_of_the_standard() {
    let read = |channel: &str| {
        let text = format!("src,dst,channel,pdr\n1,2,{channel},0.9\n");
        links::parse_channels(&FileText::of(&text), &Reading::default())
    };
    let channels = read("26").unwrap().unwrap();
    assert_eq!(channels.link(26, 0, 1), Some((f64::from(0.9f32), None)));
    assert_eq!(channels.link(25, 0, 1), None);
    for channel in ["0", "10", "27", "x"] {
        let error = read(channel).unwrap_err();
        assert_eq!(error.help.as_deref(), Some("11 to 26"), "{error}");
        let place = error.place.clone().unwrap();
        assert_eq!(&place.text[place.span], channel);
    }
}

#[test]
fn netjson_by_metric_and_by_property() {
    let graph = |rest: &str| {
        format!(
            "{{\"type\": \"NetworkGraph\", \"nodes\": [{{\"id\": \"a\"}}, {{\"id\": \"b\"}}], {rest}}}"
        )
    };
    let etx = graph(
        "\"metric\": \"ETX\", \"links\": [{\"source\": \"a\", \"target\": \"b\", \"cost\": 4.0}]",
    );
    assert_eq!(map(&etx, &[]).unwrap().between("b", "a"), 0.5);
    let tq = graph(
        "\"metric\": \"TQ\", \"links\": [{\"source\": \"a\", \"target\": \"b\", \"cost\": 4.0}]",
    );
    assert_eq!(map(&tq, &[]).unwrap().between("a", "b"), 0.25);
    let own = graph(
        "\"links\": [{\"source\": \"a\", \"target\": \"b\", \"cost\": 9, \"properties\": {\"pdr\": 0.8}}]",
    );
    assert_eq!(map(&own, &[]).unwrap().between("a", "b"), 0.8);
    let silent = graph("\"links\": [{\"source\": \"a\", \"target\": \"b\", \"cost\": 2}]");
    assert!(
        map(&silent, &[])
            .unwrap_err()
            .help
            .clone()
            .unwrap()
            .contains("metric")
    );
}

#[test]
fn meshviewer_new_and_old() {
    let new = "{\"timestamp\": \"x\", \"nodes\": [{\"node_id\": \"a\"}], \"links\": [\n{\"type\": \"wifi\", \"source\": \"a\", \"target\": \"b\", \"source_tq\": 0.5, \"target_tq\": 0.75},\n{\"type\": \"vpn\", \"source\": \"a\", \"target\": \"c\", \"source_tq\": 1}]}";
    let wifi = map(new, &[("type", "wifi")]).unwrap();
    assert_eq!(
        (
            wifi.between("a", "b"),
            wifi.between("b", "a"),
            wifi.names.len()
        ),
        (0.5, 0.75, 2)
    );
    let old = "{\"version\": 1, \"batadv\": {\"nodes\": [{\"node_id\": \"a\"}, {\"id\": \"02:00\"}], \"links\": [{\"source\": 0, \"target\": 1, \"tq\": 2.0, \"bidirect\": true}]}}";
    assert_eq!(map(old, &[]).unwrap().between("02:00", "a"), 0.5);
}

#[test]
fn json_errors_have_a_place() {
    let error = map("{\n  \"type\": NetworkGraph\n}\n", &[]).unwrap_err();
    assert_eq!(error.line_column().unwrap().0, 2);
}

#[test]
fn matrices_are_read_with_comments() {
    let rows = matrix::parse(&FileText::of("# a\n0, 0.5\n0.25,0\n\n")).unwrap();
    assert_eq!(rows, [[0.0, 0.5], [0.25, 0.0]]);
    let error = matrix::parse(&FileText::of("0,x\n")).unwrap_err();
    assert_eq!(error.line_column(), Some((1, 3)));
}

/// The measured networks next to the repository, where they exist.
#[test]
fn real_measurements_are_read() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/data");
    let cases = [
        (
            "freifunk-meshnet-lab/ulm_links.csv.gz",
            vec![("type", "wifi")],
            0,
        ),
        (
            "iotlab-grenoble-k7/grenoble.k7.gz",
            vec![("channel", "26")],
            50,
        ),
        (
            "iotlab-mercator/lyon_links.csv.gz",
            vec![("channel", "11")],
            18,
        ),
        (
            "iotlab-mercator/lille_links_wide.csv.gz",
            vec![("channel", "26")],
            224,
        ),
        (
            "orbit-rutgers-noise/links.csv.gz",
            vec![("noise_dbm", "-5")],
            29,
        ),
    ];
    for (file, select, nodes) in cases {
        let path = data.join(file);
        if !path.exists() {
            chappe_testkit::skip(format!("no {}", path.display()));
            continue;
        }
        let select = select
            .iter()
            .map(|(k, v)| (k.to_string(), v.to_string()))
            .collect();
        let reading = Reading {
            select,
            undirected: false,
        };
        let map = links(&FileText::read(&path).unwrap(), &reading).unwrap();
        assert!(
            nodes == 0 || map.names.len() == nodes,
            "{file}: {} nodes",
            map.names.len()
        );
        assert!(
            map.delivery.iter().all(|p| (0.0..=1.0).contains(p)),
            "{file}"
        );
        assert!(map.delivery.iter().any(|p| *p > 0.0 && *p < 1.0), "{file}");
    }
}
