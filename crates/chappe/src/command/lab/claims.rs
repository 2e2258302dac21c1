//! The page of claims: what of the papers is reproduced, what is not and why, and our own goals.

use chappe_figures::table::{Table, digits, with_interval};
use chappe_results::figure::Claim;

use super::done::Done;

/// A claim with where it stands.
struct Placed<'a> {
    paper: &'a str,
    figure: &'a str,
    claim: &'a Claim,
}

impl Placed<'_> {
    /// Whether it is ours: a goal, or a statement about the improved variant, which no paper has.
    fn is_goal(&self) -> bool {
        let of_ours = self.figure == "improved" || self.claim.text.contains("improved");
        self.claim.goal || of_ours && self.claim.paper.is_none()
    }

    fn is_good(&self) -> bool {
        if self.is_goal() {
            self.claim.holds
        } else {
            self.claim.is_good()
        }
    }
}

/// All claims, in three parts.
pub struct Page<'a> {
    papers: Vec<&'a str>,
    all: Vec<Placed<'a>>,
}

impl<'a> Page<'a> {
    pub fn new(all: &'a [Done]) -> Page<'a> {
        let placed = all.iter().flat_map(|done| {
            let figures = done.made.figures.iter();
            figures.flat_map(|figure| {
                figure.claims.iter().map(|claim| Placed {
                    paper: done.paper.name,
                    figure: figure.id,
                    claim,
                })
            })
        });
        Page {
            papers: all.iter().map(|done| done.paper.name).collect(),
            all: placed.collect(),
        }
    }

    fn of(&self, goal: bool, good: bool) -> Vec<&Placed<'a>> {
        let chosen = |placed: &&Placed<'a>| placed.is_goal() == goal && placed.is_good() == good;
        self.all.iter().filter(chosen).collect()
    }

    /// The counts of each paper as a table.
    pub fn counts(&self) -> Table {
        let mut table = Table::new()
            .words("paper")
            .numbers("claims reproduced", 0)
            .numbers("not", 0)
            .numbers("our goals met", 0)
            .numbers("missed", 0);
        let rows = self
            .papers
            .iter()
            .map(|paper| (*paper, Some(*paper)))
            .chain([("together", None)]);
        for (label, paper) in rows {
            let count = |goal: bool, good: bool| {
                let of = self.of(goal, good);
                of.iter()
                    .filter(|placed| paper.is_none_or(|paper| placed.paper == paper))
                    .count()
                    .to_string()
            };
            let cells = [
                label.to_string(),
                count(false, true),
                count(false, false),
                count(true, true),
                count(true, false),
            ];
            match paper {
                None => table.bold_row(cells),
                Some(_) => table.row(cells),
            }
        }
        table
    }

    /// The claims that are not reproduced, with their reasons, as lines.
    pub fn not_reproduced(&self) -> Vec<String> {
        let lines = self.of(false, false).into_iter().map(|placed| {
            format!(
                "{} {}: {}. {}. {}",
                placed.paper,
                placed.figure,
                placed.claim.text,
                numbers(placed.claim),
                reason(placed.claim)
            )
        });
        lines.collect()
    }

    /// The whole page as Markdown. `head` says how it was made.
    pub fn markdown(&self, head: &str) -> String {
        let mut page = format!(
            "# Claims\n\n{head}\n\n```text\n{}```\n",
            self.counts().render(100, false)
        );
        page += "\nA statement of a paper counts as reproduced if it holds here and, where it has a number, ours is within a quarter of it or\nthe number lies in our interval.\n";
        for (title, goal, good) in [
            ("Not reproduced", false, false),
            ("Reproduced", false, true),
            ("Our goals, missed", true, false),
            ("Our goals, met", true, true),
        ] {
            page += &format!("\n## {title}\n\n");
            let placed = self.of(goal, good);
            if placed.is_empty() {
                page += "None.\n";
                continue;
            }
            let with_reason = !good;
            page += if with_reason {
                "| figure | claim | paper | ours | reason |\n|---|---|---|---|---|\n"
            } else {
                "| figure | claim | paper | ours |\n|---|---|---|---|\n"
            };
            for placed in placed {
                let claim = placed.claim;
                page += &format!(
                    "| {} {} | {} | {} | {} |",
                    placed.paper,
                    placed.figure,
                    cell(&claim.text),
                    paper_number(claim),
                    ours(claim)
                );
                page += &if with_reason {
                    format!(" {} |\n", cell(&reason(claim)))
                } else {
                    "\n".into()
                };
            }
        }
        page
    }
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|").replace('\n', " ")
}

fn paper_number(claim: &Claim) -> String {
    claim.paper.map_or_else(String::new, |paper| {
        format!("{} {}", digits(paper), claim.unit)
            .trim()
            .to_string()
    })
}

fn ours(claim: &Claim) -> String {
    let ours = with_interval(claim.ours.mean, claim.ours.ci95);
    match claim.unit {
        "" => format!("{ours} of {}", claim.ours.n),
        unit => format!("{ours} {unit}, n={}", claim.ours.n),
    }
}

fn numbers(claim: &Claim) -> String {
    match claim.paper {
        Some(_) => format!("Paper {}, ours {}", paper_number(claim), ours(claim)),
        None => format!("Ours {}", ours(claim)),
    }
}

/// Why a claim is not good, as far as it is known.
fn reason(claim: &Claim) -> String {
    let off = claim.off().filter(|_| claim.reproduces() == Some(false));
    let off = off.map(|off| format!("{:+.0} % off the paper's number", 100.0 * off));
    match (&claim.why, off, claim.holds) {
        (Some(why), _, _) => why.clone(),
        (None, Some(off), true) => format!("it holds, but is {off}"),
        (None, Some(off), false) => format!("{off}; the cause is not known"),
        (None, None, _) => "the cause is not known".into(),
    }
}
