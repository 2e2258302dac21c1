//! The right name nearest to a wrong one.

/// The name among `known` with the smallest edit distance to `wrong`, if it is near enough to be what was
/// meant: at most a third of the longer word, and at least one letter in common.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|name| (distance(wrong, name), name))
        .filter(|&(distance, name)| {
            let longest = wrong.chars().count().max(name.chars().count());
            distance * 3 <= longest + 1 && distance < longest
        })
        .min()
        .map(|(_, name)| name)
}

/// Optimal string alignment: insertions, deletions, replacements and swaps of neighbours count one each.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (
        a.to_lowercase().chars().collect(),
        b.to_lowercase().chars().collect(),
    );
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (rows[i - 1][j] + 1)
                    .min(rows[i][j - 1] + 1)
                    .min(rows[i - 1][j - 1] + change);
                if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(rows[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_are_corrected() {
        let keys = ["channel", "tx_power", "rate", "preamble"];
        assert_eq!(nearest("tx_pwoer", keys), Some("tx_power"));
        assert_eq!(nearest("Rate", keys), Some("rate"));
        assert_eq!(nearest("preample", keys), Some("preamble"));
        assert_eq!(nearest("colour", keys), None);
        assert_eq!(nearest("", keys), None);
    }

    #[test]
    fn distances_by_hand() {
        for (a, b, expected) in [
            ("", "abc", 3),
            ("ab", "ba", 1),
            ("kitten", "sitting", 3),
            ("x", "x", 0),
        ] {
            assert_eq!(distance(a, b), expected, "{a} {b}");
        }
    }
}
