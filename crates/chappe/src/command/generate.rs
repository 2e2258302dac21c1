//! `chappe generate`: shell completions, manual pages and units of systemd, made of the command itself.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Command, Subcommand};
use clap_complete::Shell;

use crate::failure::Failure;
use crate::terminal;
use crate::unit::Unit;

#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  chappe generate completions bash > ~/.local/share/bash-completion/completions/chappe
  chappe generate man ~/.local/share/man/man1")]
pub struct Generate {
    #[command(subcommand)]
    pub what: What,
}

#[derive(Debug, Subcommand)]
pub enum What {
    /// Print the completions of a shell.
    Completions {
        /// The shell that will read the completions.
        shell: Shell,
    },
    /// Write a manual page for each command into a folder. Pages that are there already are replaced.
    Man {
        /// The folder, which is made if it does not exist.
        folder: PathBuf,
    },
    /// Write the units of a package of the whole program into a folder. `chappe link unit` and the like print one for this host.
    Units {
        /// The folder, which is made if it does not exist.
        folder: PathBuf,
    },
}

/// Describes `line`, the whole command line.
pub fn run(options: &Generate, line: Command) -> Result<u8, Failure> {
    match &options.what {
        What::Completions { shell } => completions(*shell, line)?,
        What::Man { folder } => {
            let pages = man(folder, line)?;
            terminal::tell(&format!(
                "wrote {pages} manual pages to {}; read one with:  man -l {}",
                folder.display(),
                folder.join("chappe.1").display()
            ));
        }
        What::Units { folder } => {
            let units = units();
            for (name, unit) in &units {
                let path = folder.join(format!("{name}.service"));
                chappe_store::write_whole(&path, |file| file.write_all(unit.text().as_bytes()))?;
            }
            terminal::tell(&format!(
                "wrote {} units to {}",
                units.len(),
                folder.display()
            ));
        }
    }
    Ok(0)
}

/// The units of a package, and their names.
fn units() -> [(&'static str, Unit); 3] {
    [
        ("chappe-cast@", super::cast::packaged()),
        ("chappe-link@", super::link::packaged()),
        ("chappe-mesh", super::mesh::packaged()),
    ]
}

fn completions(shell: Shell, mut line: Command) -> Result<(), Failure> {
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut line, "chappe", &mut text);
    terminal::print(&String::from_utf8_lossy(&text))
}

/// Writes `chappe.1`, `chappe-link.1`, `chappe-link-run.1` and so on; returns their number.
fn man(folder: &Path, mut command: Command) -> Result<usize, Failure> {
    // Names of subcommands become `chappe-link` and their usage `chappe link`.
    command.build();
    let mut pages = 0;
    let mut waiting = vec![command];
    while let Some(command) = waiting.pop() {
        let shown = command
            .get_subcommands()
            .filter(|one| !one.is_hide_set() && one.get_name() != "help");
        waiting.extend(shown.cloned());
        let name = command.get_display_name().unwrap_or(command.get_name());
        let path = folder.join(format!("{name}.1"));
        let page = clap_mangen::Man::new(command);
        chappe_store::write_whole(&path, |file| {
            let mut text = Vec::new();
            page.render(&mut text)?;
            file.write_all(with_notes(&String::from_utf8_lossy(&text)).as_bytes())
        })?;
        pages += 1;
    }
    Ok(pages)
}

/// A page whose text after the options keeps its lines: `clap_mangen` calls it EXTRA and lets the reader's program fill them.
fn with_notes(page: &str) -> String {
    let Some((before, after)) = page.split_once(".SH EXTRA\n") else {
        return page.to_owned();
    };
    let (text, rest) = match after.find("\n.SH ") {
        Some(end) => after.split_at(end + 1),
        None => (after, ""),
    };
    let close = if text.ends_with('\n') { "" } else { "\n" };
    format!("{before}.SH NOTES\n.nf\n{text}{close}.fi\n{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::Cli;
    use clap::CommandFactory;

    /// Goal: every command has its page, with its options.
    #[test]
    fn every_command_has_a_manual_page() {
        let folder = std::env::temp_dir().join(format!("chappe-man-{}", std::process::id()));
        assert!(man(&folder, Cli::command()).unwrap() > 30);
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        for command in Cli::command().get_subcommands() {
            assert!(read(&format!("chappe-{}.1", command.get_name())).contains(".TH"));
        }
        assert!(read("chappe-link-run.1").contains("chappe\\-link\\-run"));
        assert!(read("chappe-sim.1").contains("\\-\\-seeds"));
        // Examples keep their lines.
        let view = read("chappe-view.1");
        assert!(!view.contains("EXTRA"));
        assert!(view.contains(".SH NOTES\n.nf\nExamples:\n  chappe sim "));
        assert!(read("chappe.1").contains("\n.fi\n.SH VERSION"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn completions_of_every_shell_name_every_command() {
        use clap::ValueEnum;
        for shell in Shell::value_variants() {
            let mut text = Vec::new();
            clap_complete::generate(*shell, &mut Cli::command(), "chappe", &mut text);
            let text = String::from_utf8(text).unwrap();
            for command in Cli::command().get_subcommands() {
                assert!(
                    text.contains(command.get_name()),
                    "{shell}: {}",
                    command.get_name()
                );
            }
        }
    }
}
