use super::*;
use chappe_link::{BULK, Psk, Secret};
use chappe_wildnet::Service;

const PLACEHOLDER: &str = "THE PUBLIC KEY OF THE OTHER HOST";

fn key(fill: u8) -> String {
    Secret::new([fill; 32]).public().to_string()
}

/// The template with the other host's key.
fn template() -> String {
    TEMPLATE.replace(PLACEHOLDER, &key(4))
}

fn read_text(name: &str, text: &str) -> Result<Configuration, InputError> {
    read_with(name, text, &[])
}

fn read_with(name: &str, text: &str, more: &[(&str, &str)]) -> Result<Configuration, InputError> {
    let folder = std::env::temp_dir().join(format!("chappe-link-{}-{name}", std::process::id()));
    std::fs::create_dir_all(folder.join("peers")).unwrap();
    std::fs::write(folder.join("host.key"), Secret::new([3; 32]).to_text()).unwrap();
    std::fs::write(folder.join("other.psk"), Psk::new([5; 32]).to_text()).unwrap();
    for (file, text) in more {
        std::fs::write(folder.join(file), text).unwrap();
    }
    std::fs::write(folder.join("link.toml"), text).unwrap();
    let read = read(&folder.join("link.toml"));
    std::fs::remove_dir_all(&folder).unwrap();
    read
}

#[test]
fn the_template_can_be_read_whole() {
    let template = template();
    let all = template
        .replace("\n# ", "\n")
        .replace("\nThe service of", "\n# The service of")
        .replacen("One end", "# One end", 1)
        .replacen("\nSeveral paths", "\n# Several paths", 1)
        .replacen("\nWithout a device", "\n# Without a device", 1)
        .replacen("device = \"chappe0\"", "device = \"none\"", 1)
        // Paths have their own.
        .replacen("endpoint = \"192.0.2.7:1795\"       #", "# ", 1)
        .replacen("rate = \"6 Mbit/s\"", "", 1)
        // There is no such peer.
        .replacen("introducer = \"server\"", "", 1);
    for (name, text) in [("as-is", &template), ("all", &all)] {
        let read = read_text(name, text).unwrap();
        assert_eq!(read.peers[0].config.services[1], BULK);
        let urgent = Service {
            every_path: name == "all",
            ..Service::PROMPT
        };
        assert_eq!(read.peers[0].config.services[0], urgent);
    }
}

#[test]
fn mistakes_are_reported_with_their_place() {
    for (name, right, mistake, said) in [
        ("address", "\"10.9.0.1/24\"", "\"10.9.0.1\"", "network"),
        ("listen", "\"[::]:1795\"", "\"1795\"", "port"),
        ("network", "\"10.9.0.2/32\"", "\"ten\"", "ten"),
        ("field", "networks =", "network =", "network"),
        (
            "rate",
            "# rate = \"6 Mbit/s\"",
            "rate = \"0 Mbit/s\"",
            "1 kbit/s",
        ),
        (
            "device",
            "\"chappe0\"",
            "\"a-much-too-long-name\"",
            "name of a device",
        ),
        (
            "family",
            "\"192.0.2.7:1795\"",
            "\"192.0.2.256:1795\"",
            "a host and a port",
        ),
        (
            "carrier",
            "listen = \"[::]:1795\"",
            "ethernet = \"wlan0\"",
            "Ethernet address",
        ),
        (
            "no-host",
            "\"192.0.2.7:1795\"",
            "\"192.0.2.7:0\"",
            "no host",
        ),
        (
            "distance",
            "# distance = \"20 km\"",
            "distance = \"20\"",
            "unit",
        ),
        (
            "keepalive",
            "# keepalive = \"25 s\"",
            "keepalive = \"0.1 s\"",
            "1 s to 1 h",
        ),
        (
            "introducer",
            "# introducer =",
            "introducer =",
            "no other peer",
        ),
        ("key", "\"host.key\"", "\"other.key\"", "key new"),
        (
            "memory",
            "# memory = \"256 MB\"",
            "memory = \"1 kB\"",
            "4 MB to 64 GB",
        ),
        (
            "port-with-device",
            "# [[port]]\n# listen",
            "[[port]]\nto = \"10.9.0.2:22\"\nlisten",
            "device = \"none\"",
        ),
        (
            "serve-nothing",
            "# [[serve]]\n# port = 22",
            "[[serve]]\nto = \"127.0.0.1:22\"\nport = 22",
            "device = \"none\"",
        ),
        ("public", &key(4), "abc", "key public"),
        (
            "old",
            "public_key = ",
            "key_file = \"link.key\" # ",
            "no shared one",
        ),
    ] {
        let error = read_text(name, &template().replacen(right, mistake, 1))
            .err()
            .unwrap();
        assert!(
            error.to_string().contains(said) && error.line_column().is_some(),
            "{error}"
        );
    }
    // The unchanged template says what is missing.
    let error = read_text("unchanged", TEMPLATE).err().unwrap();
    assert!(error.to_string().contains("key public"), "{error}");
    // Of both families or of the right one.
    let v4 = template().replacen("[::]:1795", "0.0.0.0:1795", 1);
    assert!(read_text("v4", &v4).is_ok());
    let v6 = v4.replacen("192.0.2.7:1795", "[2001:db8::7]:1795", 1);
    let error = read_text("v6", &v6).err().unwrap();
    assert!(error.to_string().contains("cannot be reached"), "{error}");
}

/// Goal: an old file, unchanged, gets one error that says what to do on both hosts.
#[test]
fn a_file_of_a_former_release_is_explained() {
    let old = "[link]\naddress = \"10.9.0.1/24\"\nlisten = \"0.0.0.0:1795\"\n[[peer]]\nname = \"other\"\nkey_file = \"link.key\"\nendpoint = \"192.0.2.7:1795\"\nnetworks = [\"10.9.0.2/32\"]\n";
    let error = read_text("former", old).err().unwrap().to_string();
    for told in ["key new", "key public", "public_key", "preshared_key_file"] {
        assert!(error.contains(told), "{error}");
    }
}

/// Goal: names, both families and a folder of peers are read; a name that is an address written wrong is none.
#[test]
fn names_families_and_folders_are_read() {
    let named = template().replacen("192.0.2.7:1795", "hill.example.net:1795", 1);
    let read = read_text("named", &named).unwrap();
    assert_eq!(read.peers[0].host, Some(("hill.example.net".into(), 1795)));
    let both = template().replacen("\"10.9.0.1/24\"", "[\"10.9.0.1/24\", \"fd09::1/64\"]", 1);
    assert_eq!(read_text("both", &both).unwrap().tunnel.addresses.len(), 2);
    let folder = template().replacen("# peers =", "peers =", 1);
    let file = |fill| {
        format!(
            "public_key = \"{}\"\nnetworks = [\"10.9.0.{fill}/32\"]\n",
            key(fill)
        )
    };
    let more = [
        ("peers/town.toml", &*file(7)),
        ("peers/hill.toml", &file(8)),
        ("peers/notes.txt", "x"),
    ];
    let read = read_with("folder", &folder, &more).unwrap();
    let names: Vec<_> = read.peers.iter().map(|peer| &*peer.config.name).collect();
    assert_eq!(names, ["other", "hill", "town"]);
    let wrong = [("peers/town.toml", "networks = [1]\n")];
    let error = read_with("wrong", &folder, &wrong).err().unwrap();
    assert!(error.to_string().contains("town.toml"), "{error}");
}

/// Goal: without a device, what goes through the link is read, and mistakes in it have their place; a listener that others reach warns.
#[test]
fn connections_without_a_device_are_read() {
    let none = template().replacen("\"chappe0\"", "\"none\"", 1);
    let tables = "[[port]]\nlisten = \"0.0.0.0:8022\"\nto = \"10.9.0.2:22\"\n[socks]\nlisten = \"127.0.0.1:1080\"\n[[serve]]\nport = 22\nto = \"127.0.0.1:22\"\n";
    let whole = none.clone() + tables;
    let read = read_text("streams", &whole).unwrap();
    let streams = read.tunnel.streams.unwrap();
    assert_eq!(
        streams.ports,
        [(
            "0.0.0.0:8022".parse().unwrap(),
            "10.9.0.2:22".parse().unwrap()
        )]
    );
    assert_eq!(streams.socks, Some("127.0.0.1:1080".parse().unwrap()));
    assert_eq!(streams.served, [(22, "127.0.0.1:22".parse().unwrap())]);
    assert_eq!((streams.connections, streams.buffer), (128, 1 << 20));
    assert!(
        read.warnings
            .iter()
            .any(|warning| warning.contains("whoever reaches 0.0.0.0:8022"))
    );
    assert!(
        read_text("streams-none", &none)
            .unwrap()
            .tunnel
            .streams
            .is_some()
    );
    // The template mentions the tables in comments.
    let changed = |right: &str, mistake: &str| match tables.contains(right) {
        true => none.clone() + &tables.replacen(right, mistake, 1),
        false => none.replacen(right, mistake, 1) + tables,
    };
    for (name, right, mistake, said) in [
        (
            "no-port",
            "10.9.0.2:22",
            "10.9.0.2",
            "not an address and port",
        ),
        ("zero", "port = 22", "port = 0", "port 0 cannot be served"),
        ("few", "[link]", "[link]\nconnections = 0", "1 to 10000"),
        ("small", "[link]", "[link]\nbuffer = \"1 kB\"", "16 kB"),
        (
            "twice",
            "[[serve]]",
            "[[serve]]\nport = 22\nto = \"127.0.0.1:23\"\n[[serve]]",
            "served twice",
        ),
    ] {
        let error = read_text(name, &changed(right, mistake)).err().unwrap();
        assert!(
            error.to_string().contains(said) && error.line_column().is_some(),
            "{error}"
        );
    }
    let error = read_text("homeless", &changed("address = ", "# "))
        .err()
        .unwrap();
    assert!(error.to_string().contains("1 to 8"), "{error}");
}

/// Goal: two peers with one name or one key are refused; a file copied unchanged to the other end causes a warning.
#[test]
fn doubtful_settings_are_reported() {
    let template = template();
    let peer = template.split_once("[[peer]]").unwrap().1;
    let twice = format!("{template}\n[[peer]]\n{peer}");
    let error = read_text("twice", &twice).err().unwrap();
    assert!(error.to_string().contains("two peers"), "{error}");
    let renamed = twice.replacen("\"other\"", "\"third\"", 1);
    let error = read_text("keys", &renamed).err().unwrap();
    assert!(
        error.to_string().contains("has the public key of"),
        "{error}"
    );
    let own = TEMPLATE.replace(PLACEHOLDER, &key(3));
    let error = read_text("own", &own).err().unwrap();
    assert!(error.to_string().contains("this host itself"), "{error}");
    let copied = template.replacen("\"10.9.0.2/32\"", "\"10.9.0.1/32\"", 1);
    let read = read_text("copied", &copied).unwrap();
    let warned = |read: &Configuration, what: &str| {
        read.warnings.iter().any(|warning| warning.contains(what))
    };
    assert!(warned(&read, "this host's address"), "{:?}", read.warnings);
    // A network may hold both ends.
    let whole = template.replacen("\"10.9.0.2/32\"", "\"10.9.0.0/24\"", 1);
    assert!(!warned(
        &read_text("whole", &whole).unwrap(),
        "this host's address"
    ));
}

/// Goal: the paths of a peer are read with their names, interfaces, costs and endpoints; what contradicts itself is refused with
/// what to write.
#[test]
fn paths_are_read() {
    let usual = template();
    let paths = |text: &str| {
        let one = usual.replacen("endpoint = \"192.0.2.7:1795\"", "", 1);
        one + text
    };
    let two = "
        [[peer.path]]
        name = \"dsl\"
        interface = \"eth0\"
        endpoint = \"192.0.2.7:1795\"
        rate = \"10 Mbit/s\"
        [[peer.path]]
        name = \"lte\"
        endpoint = \"hill.example.net:1795\"
        cost = \"50 ms\"
        reserve = true
        [peer.urgent]
        every_path = true
    ";
    let read = read_text("paths", &paths(two)).unwrap();
    let peer = &read.peers[0];
    let [dsl, lte] = &peer.config.paths[..] else {
        panic!("{:?}", peer.config.paths);
    };
    assert_eq!(
        (&*dsl.name, dsl.interface.as_deref()),
        ("dsl", Some("eth0"))
    );
    assert_eq!(dsl.rate.map(|rate| rate.0), Some(10_000_000));
    assert!(lte.reserve && lte.cost == Duration::from_millis(50) && lte.endpoint.is_none());
    assert_eq!(peer.path_hosts[1], Some(("hill.example.net".into(), 1795)));
    assert!(peer.config.services[0].every_path && !peer.config.services[1].every_path);
    let wrong = [
        (usual.clone() + two, "no `endpoint` of its own"),
        (paths(&two.replace("lte", "dsl")), "two paths"),
        (paths(&two.replace("50 ms", "50 min")), "a cost of"),
        (
            paths(two)
                .replacen("listen = \"[::]:1795\"", "ethernet = \"eth0\"", 1)
                .replace("192.0.2.7:1795", "02:00:00:00:00:07"),
            "choose an interface",
        ),
    ];
    for (text, told) in wrong {
        let error = read_text("wrong-paths", &text).err().unwrap();
        assert!(error.to_string().contains(told), "{error}");
    }
}
