//! Masts and the links between them: which radio stands where, and the way from one mast to another.
//!
//! Each link has two radios of its own, one at either end: link `l` has radios `2 l` and `2 l + 1`.

/// Masts and links that form a tree: one way leads from each mast to each other one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    masts: usize,
    /// The two masts of each link.
    links: Vec<(usize, usize)>,
}

/// Why masts and links form no tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unfit {
    /// The link at this place names a mast that does not exist.
    NoMast(usize),
    /// The link at this place leads from a mast to itself.
    Loop(usize),
    /// The link at this place joins masts between which a way leads already.
    Ring(usize),
    /// No way leads to this mast from mast 0.
    Apart(usize),
}

impl Layout {
    /// Masts in a line of so many links, each mast linked to the next.
    pub fn line(links: usize) -> Layout {
        Layout {
            masts: links + 1,
            links: (0..links).map(|mast| (mast, mast + 1)).collect(),
        }
    }

    /// Masts with these links. Fails if they form no tree.
    pub fn new(masts: usize, links: Vec<(usize, usize)>) -> Result<Layout, Unfit> {
        // Masts between which a way leads have the same number.
        let mut parts: Vec<usize> = (0..masts).collect();
        for (place, &(a, b)) in links.iter().enumerate() {
            let (Some(&one), Some(&other)) = (parts.get(a), parts.get(b)) else {
                return Err(Unfit::NoMast(place));
            };
            if a == b {
                return Err(Unfit::Loop(place));
            }
            if one == other {
                return Err(Unfit::Ring(place));
            }
            let joined = parts.iter_mut().filter(|part| **part == other);
            joined.for_each(|part| *part = one);
        }
        match parts.iter().position(|part| *part != parts[0]) {
            Some(mast) => Err(Unfit::Apart(mast)),
            None => Ok(Layout { masts, links }),
        }
    }

    /// The number of masts.
    pub fn masts(&self) -> usize {
        self.masts
    }

    /// The two masts of each link.
    pub fn links(&self) -> &[(usize, usize)] {
        &self.links
    }

    /// The number of radios: two for each link.
    pub fn radios(&self) -> usize {
        2 * self.links.len()
    }

    /// The mast on which a radio stands.
    pub fn mast_of(&self, radio: usize) -> usize {
        let (a, b) = self.links[radio / 2];
        if radio.is_multiple_of(2) { a } else { b }
    }

    /// The radios of a mast, in ascending order.
    pub fn radios_at(&self, mast: usize) -> Vec<usize> {
        let all = 0..self.radios();
        all.filter(|&radio| self.mast_of(radio) == mast).collect()
    }

    /// The place of a radio among those of its mast.
    pub fn place(&self, radio: usize) -> usize {
        let mast = self.mast_of(radio);
        (0..radio)
            .filter(|&other| self.mast_of(other) == mast)
            .count()
    }

    /// The radios at the two ends of the link between two masts, in their order.
    pub fn between(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let ends = |(link, &(a, b)): (usize, &(usize, usize))| match (from, to) {
            _ if (a, b) == (from, to) => Some((2 * link, 2 * link + 1)),
            _ if (b, a) == (from, to) => Some((2 * link + 1, 2 * link)),
            _ => None,
        };
        self.links.iter().enumerate().find_map(ends)
    }

    /// The way between two masts: the radios that send along it.
    pub fn way(&self, from: usize, to: usize) -> Vec<usize> {
        let steps = self.steps_to(to);
        let (mut at, mut way) = (from, Vec::new());
        while let Some(Some(sends)) = steps.get(at).filter(|_| at != to) {
            way.push(*sends);
            at = self.mast_of(sends ^ 1);
        }
        way
    }

    /// For each mast the radio that leads from it towards `root`; none for the root itself.
    fn steps_to(&self, root: usize) -> Vec<Option<usize>> {
        let mut steps = vec![None; self.masts];
        let mut open = vec![root];
        while let Some(mast) = open.pop() {
            for radio in self.radios_at(mast) {
                let next = self.mast_of(radio ^ 1);
                if next != root && steps[next].is_none() {
                    steps[next] = Some(radio ^ 1);
                    open.push(next);
                }
            }
        }
        steps
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A star of four with a tail: 0 in the middle, 4 behind 3.
    fn star() -> Layout {
        Layout::new(5, vec![(0, 1), (2, 0), (0, 3), (3, 4)]).unwrap()
    }

    #[test]
    fn radios_stand_at_the_ends_of_links() {
        let star = star();
        assert_eq!(star.radios(), 8);
        assert_eq!(star.radios_at(0), [0, 3, 4]);
        assert_eq!(star.radios_at(3), [5, 6]);
        assert_eq!([0, 3, 4, 6].map(|radio| star.place(radio)), [0, 1, 2, 1]);
        assert_eq!(star.between(0, 2), Some((3, 2)));
        assert_eq!(star.between(1, 2), None);
        let line = Layout::line(3);
        assert_eq!(
            (line.radios_at(0), line.radios_at(2)),
            (vec![0], vec![3, 4])
        );
    }

    #[test]
    fn ways_lead_along_the_tree() {
        assert_eq!(star().way(4, 2), [7, 5, 3]);
        assert_eq!(star().way(1, 1), [0; 0]);
        assert_eq!(Layout::line(3).way(3, 0), [5, 3, 1]);
    }

    #[test]
    fn links_that_form_no_tree_are_told_apart() {
        let unfit = |links: &[(usize, usize)]| Layout::new(3, links.to_vec()).err();
        assert_eq!(unfit(&[(0, 1), (1, 3)]), Some(Unfit::NoMast(1)));
        assert_eq!(unfit(&[(0, 0), (1, 2)]), Some(Unfit::Loop(0)));
        assert_eq!(unfit(&[(0, 1), (1, 0)]), Some(Unfit::Ring(1)));
        assert_eq!(unfit(&[(0, 1), (1, 2), (2, 0)]), Some(Unfit::Ring(2)));
        assert_eq!(unfit(&[(0, 1)]), Some(Unfit::Apart(2)));
    }
}
