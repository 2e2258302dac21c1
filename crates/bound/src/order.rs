//! Sorting by a value. It is compiled once for all types, since each comparison that a sort of the standard library is given makes a
//! further copy of that sort, of some 3,000 lines of LLVM's language.

/// Puts items in the order of rising values; those of equal values keep their order.
pub(crate) fn rising<T>(items: &mut Vec<T>, value: impl Fn(&T) -> f64) {
    reorder(items, places(items.iter().map(value).collect()));
}

/// Puts items in the order of falling values; those of equal values keep their order.
pub(crate) fn falling<T>(items: &mut Vec<T>, value: impl Fn(&T) -> f64) {
    // `total_cmp` orders negated numbers the other way round, zeros and NaN included.
    reorder(
        items,
        places(items.iter().map(|item| -value(item)).collect()),
    );
}

/// The places of values, by rising value and then by place.
fn places(values: Vec<f64>) -> Vec<(f64, usize)> {
    let mut places: Vec<(f64, usize)> = values.into_iter().zip(0..).collect();
    places.sort_unstable_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    places
}

fn reorder<T>(items: &mut Vec<T>, places: Vec<(f64, usize)>) {
    let mut old: Vec<Option<T>> = items.drain(..).map(Some).collect();
    items.extend(places.iter().filter_map(|&(_, at)| old[at].take()));
}

#[cfg(test)]
mod tests {
    use super::*;
    use chappe_testkit::SplitMix64;

    /// Both orders are those of a stable sort by `total_cmp`, for values with many ties, zeros of both signs and infinities.
    #[test]
    fn orders_are_those_of_a_stable_sort() {
        let mut random = SplitMix64(7);
        let values = [
            0.0,
            -0.0,
            1.0,
            2.0,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
        ];
        for length in 0..60 {
            let items: Vec<(f64, usize)> = (0..length)
                .map(|at| (values[(random.unit() * 7.0) as usize], at))
                .collect();
            let places =
                |items: &[(f64, usize)]| items.iter().map(|&(_, at)| at).collect::<Vec<_>>();
            let (mut up, mut down) = (items.clone(), items.clone());
            rising(&mut up, |item| item.0);
            falling(&mut down, |item| item.0);
            let (mut stable_up, mut stable_down) = (items.clone(), items);
            stable_up.sort_by(|a, b| a.0.total_cmp(&b.0));
            stable_down.sort_by(|a, b| b.0.total_cmp(&a.0));
            assert_eq!(places(&up), places(&stable_up));
            assert_eq!(places(&down), places(&stable_down));
        }
    }
}
