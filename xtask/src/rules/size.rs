//! Files that do not belong into the repository because of their size: programs, archives and recordings of other people.

use super::Finding;
use crate::workspace::Workspace;

/// The largest file that passes, in octets. The largest of ours is a picture of 170 kB; the archives that were once
/// committed by mistake had 1 MB and more.
const OCTETS_MAX: u64 = 256 * 1024;

/// Files longer than [`OCTETS_MAX`].
pub fn rule(workspace: &Workspace) -> Vec<Finding> {
    let large = workspace.sizes.iter().filter(|f| f.octets > OCTETS_MAX);
    large
        .map(|file| {
            let what = format!(
                "{} octets, more than {OCTETS_MAX}: name it in .gitignore, or let a command fetch or make it",
                file.octets
            );
            Finding::new(&file.path, what)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::planted::holds_here;
    use super::*;
    use crate::workspace::FileSize;

    #[test]
    fn downloads_stay_outside() {
        holds_here(rule);
        let mut planted = Workspace::default();
        for octets in [OCTETS_MAX, OCTETS_MAX + 1] {
            let path = "ns3.whl".to_owned();
            planted.sizes.push(FileSize { path, octets });
        }
        assert_eq!(rule(&planted).len(), 1);
    }
}
