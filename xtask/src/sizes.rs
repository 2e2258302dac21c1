//! What TCP costs a microcontroller: octets of code, octets of memory, instructions. And what the images for boards take.
//!
//! `proof/tcplp-two-sockets` is built for a Cortex-M4, as small as the compiler makes it. Its program `tcp` makes every
//! call that a mote would make; `bare` does nothing, and the difference is TCP's. Its program `firmware` plays a transfer
//! under QEMU, which must send what the same transfer sends here, and counts instructions.

use std::fmt::Write;
use std::fs;

use crate::elf::Elf;
use crate::firmware::{self, Image};
use crate::process;
use crate::report::{Outcome, Report};
use crate::targets::{self, FIRMWARE as TARGET};
use crate::terminal;
use crate::workspace::Workspace;

/// Where the figures are kept.
const RECORD: &str = "docs/benchmarks/tcplp-sizes.txt";
const FOLDER: &str = "proof/tcplp-two-sockets";
/// Where those of the images for boards are kept.
const BOARDS: &str = "docs/benchmarks/firmware-sizes.txt";

/// What the image's `.sizes` section holds, in order, and the bound of each.
const MEMORY: [(&str, u32); 6] = [
    ("a socket, without buffers", 256),
    ("a listener", 24),
    ("an entry for a segment in flight", 12),
    ("an entry for a hole", 8),
    ("what the sockets of an address share", 256),
    (
        "a leaf's 6LoWPAN interface, two datagrams of 536 included",
        1536,
    ),
];

/// The goal for TCP's code and constants, octets.
const TEXT_GOAL: u32 = 16 * 1024;
/// No more than this is let in: what stands, and a little.
const TEXT_MAX: u32 = 16_600;
/// The goal without cargo features, and what is let in: what stands, and a little.
const LEAST_GOAL: u32 = 11 * 1024;
const LEAST_MAX: u32 = 11_400;
/// Instructions for one call, on average.
const INSTRUCTIONS_MAX: u64 = 8_000;
/// The goal for a segment with data, made or taken.
const INSTRUCTIONS_GOAL: u64 = 4_000;

/// `cargo xtask sizes`: this step alone; keeps the figures.
pub fn alone() -> Result<(), String> {
    let workspace = Workspace::load()?;
    let mut report = Report::new();
    report.step("sizes", || sizes(&workspace, true));
    report.step("images", || images(&workspace));
    report.close()
}

/// Weighs the images for boards and TLS, counts instructions and the depth of stacks, and keeps all.
fn images(workspace: &Workspace) -> Outcome {
    if !targets::is_installed(TARGET, &workspace.root) {
        return Outcome::Skipped(format!("needs `rustup target add {TARGET}`"));
    }
    keep_images(workspace).into()
}

fn keep_images(workspace: &Workspace) -> Result<String, String> {
    let compiler = process::first_line("rustc", &["--version"], &workspace.root);
    let mut text = String::new();
    say(
        &mut text,
        &format!("{}; `cargo xtask sizes`", compiler.unwrap_or_default()),
    );
    let weighed = firmware::weigh(workspace)?;
    weighed.iter().for_each(|line| say(&mut text, line));
    if firmware::can_run() {
        for (what, folder) in [
            ("The thermometer and its visitor", firmware::THERMOMETER),
            ("P³", firmware::PIPELINE),
        ] {
            say(
                &mut text,
                &format!("\n{what} on a Cortex-M4, instructions under QEMU"),
            );
            for line in firmware::compare(workspace, folder)?.counted {
                say(&mut text, line.trim_start_matches("# "));
            }
        }
    }
    weigh_tls(workspace, &mut text)?;
    terminal::say(&text);
    fs::write(workspace.root.join(BOARDS), &text).map_err(|why| format!("{BOARDS}: {why}"))?;
    Ok(format!("{} images", weighed.len()))
}

/// What a client's session of TLS takes of flash, beyond its socket, and what it does and needs under QEMU.
fn weigh_tls(workspace: &Workspace, text: &mut String) -> Result<(), String> {
    let image = Image::build(workspace, firmware::TLS, &["bare", "tls"], &[])?;
    let flash = own(&image.elf("bare")?, &image.elf("tls")?);
    say(text, "\nTLS 1.3 with a pre-shared key on a Cortex-M4");
    say(text, &format!("flash, beyond its socket: {flash} octets"));
    if firmware::can_run() {
        for line in firmware::compare(workspace, firmware::TLS)?.counted {
            say(text, line.trim_start_matches("# "));
        }
    }
    Ok(())
}

/// Builds, measures, prints and judges.
pub fn sizes(workspace: &Workspace, keep: bool) -> Outcome {
    if !targets::is_installed(TARGET, &workspace.root) {
        return Outcome::Skipped(format!("needs `rustup target add {TARGET}`"));
    }
    measure(workspace, keep).into()
}

fn measure(workspace: &Workspace, keep: bool) -> Result<String, String> {
    let with = |more: &[&str]| -> Result<(Elf, Elf), String> {
        let image = Image::build(workspace, FOLDER, &["bare", "tcp"], more)?;
        Ok((image.elf("bare")?, image.elf("tcp")?))
    };
    let least = with(&["--no-default-features"])?;
    let cookies = with(&["--features", "cookies"])?;
    let (bare, tcp) = with(&[])?;
    let mut text = String::new();
    let compiler = process::first_line("rustc", &["--version"], &workspace.root);
    say(
        &mut text,
        "TCP on a Cortex-M4 (thumbv7em-none-eabi, opt-level z, fat LTO, overflow checks on).",
    );
    say(
        &mut text,
        &format!("{}; `cargo xtask sizes`", compiler.unwrap_or_default()),
    );
    let code = judge_code(&mut text, &bare, &tcp);
    let whole = own(&bare, &tcp);
    let more = own(&cookies.0, &cookies.1).saturating_sub(whole);
    say(&mut text, &format!("{more:>7}  SYN cookies, beyond that"));
    let least = judge_least(&mut text, own(&least.0, &least.1));
    let memory = judge_memory(&mut text, &tcp);
    let work = match firmware::can_run() {
        true => judge_work(&mut text, &firmware::compare(workspace, FOLDER)?.counted),
        false => {
            say(
                &mut text,
                "instructions: not counted, there is no qemu-system-arm",
            );
            Ok(())
        }
    };
    terminal::say(&text);
    if keep {
        fs::write(workspace.root.join(RECORD), &text).map_err(|why| format!("{RECORD}: {why}"))?;
    }
    let code = code?;
    least?;
    memory?;
    work?;
    Ok(format!(
        "{code} octets of code, {:.0} % of the goal",
        f64::from(code) * 100.0 / f64::from(TEXT_GOAL)
    ))
}

fn say(text: &mut String, line: &str) {
    let _ = writeln!(text, "{line}");
}

/// What moves and fills memory, which any program has.
fn moves(elf: &Elf) -> u32 {
    elf.functions(|name| name.starts_with("__aeabi_mem") || name.contains("compiler_builtins3mem"))
}

/// Code and constants: what the image has beyond the bare one, less what moves and fills memory.
fn own(bare: &Elf, tcp: &Elf) -> u32 {
    let own = |elf: &Elf| elf.loaded().saturating_sub(moves(elf));
    own(tcp).saturating_sub(own(bare))
}

/// TCP without the mechanisms that cargo features turn off.
fn judge_least(text: &mut String, code: u32) -> Result<(), String> {
    say(
        text,
        &format!("{code:>7}  TCP without any of its cargo features (goal {LEAST_GOAL})"),
    );
    match code <= LEAST_MAX {
        true => Ok(()),
        false => Err(format!(
            "{code} octets without features are more than {LEAST_MAX}"
        )),
    }
}

fn judge_code(text: &mut String, bare: &Elf, tcp: &Elf) -> Result<u32, String> {
    let code = own(bare, tcp);
    say(text, "\ncode and constants, octets");
    say(text, &format!("{code:>7}  TCP (goal {TEXT_GOAL})"));
    let routines = moves(tcp);
    say(
        text,
        &format!("{routines:>7}  the compiler's routines that move and fill memory, not counted"),
    );
    let division = tcp.functions(|name| name.contains("div"));
    say(text, &format!("{division:>7}  of TCP: 64-bit division"));
    match code <= TEXT_MAX {
        true => Ok(code),
        false => Err(format!("{code} octets of code are more than {TEXT_MAX}")),
    }
}

fn judge_memory(text: &mut String, tcp: &Elf) -> Result<(), String> {
    say(text, "\nmemory, octets");
    let sizes = tcp.words(".sizes")?;
    if sizes.len() != MEMORY.len() {
        return Err(format!(
            "{} sizes in the image, {} wanted",
            sizes.len(),
            MEMORY.len()
        ));
    }
    let mut over = None;
    for ((what, bound), size) in MEMORY.iter().zip(&sizes) {
        say(text, &format!("{size:>7}  {what} (at most {bound})"));
        if size > bound {
            over = Some(format!("{what}: {size} octets are more than {bound}"));
        }
    }
    over.map_or(Ok(()), Err)
}

/// The lines that the firmware counted: `# lost 1/17 SendData times 216 mean 5126 most 5960`.
fn judge_work(text: &mut String, counted: &[String]) -> Result<(), String> {
    say(
        text,
        "\ninstructions, each call of each end, over a transfer of 200 segments of 462 octets",
    );
    let mut over = None;
    for line in counted {
        let line = line.trim_start_matches("# ");
        let mean = line
            .split_once(" mean ")
            .and_then(|(_, rest)| rest.split(' ').next()?.parse::<u64>().ok());
        let Some(mean) = mean else {
            return Err(format!("not understood: {line}"));
        };
        let goal = match line.contains(" SendData ") || line.contains(" TakeData ") {
            true => format!(" (goal {INSTRUCTIONS_GOAL})"),
            false => String::new(),
        };
        say(text, &format!("  {line}{goal}"));
        // What both ends do for one segment is the sum of several calls.
        if mean > INSTRUCTIONS_MAX && !line.contains("all, both ends") {
            over = Some(format!("more than {INSTRUCTIONS_MAX} instructions: {line}"));
        }
    }
    if counted.len() < 16 {
        return Err("the firmware counted too little".to_owned());
    }
    over.map_or(Ok(()), Err)
}
