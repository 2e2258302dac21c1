use super::*;
use crate::Settings;

const NOW: Instant = Instant::from_millis(3000);

/// Node 0 with neighbours 1, 2, 3 at ETX 1, 2, 1.
fn links() -> Links {
    let mut links = Links::new(Settings::paper().probes, 4);
    for (node, heard) in [(1, 10), (2, 5), (3, 10)] {
        let place = links.enter(Instant::ZERO, node).unwrap();
        for n in 0..10 {
            links.on_probe(NOW, place, (1, n), Some((heard, 10)));
        }
        links.update(NOW, place);
    }
    links
}

fn routes() -> Routes {
    Routes::new(0, Settings::paper().routing, false, 4, 4)
}

fn route(destination: u16, seq: u16, etx: f64, via: u16) -> Route {
    Route {
        destination,
        seq,
        metric: Metric::from_etx(etx),
        via,
    }
}

fn on_route(routes: &mut Routes, now: Instant, neighbour: u8, entry: Route) -> RouteChange {
    routes.on_route(now, neighbour, entry, &links(), |_| true)
}

fn ranked(routes: &Routes, node: u16) -> Vec<(u8, f64)> {
    let destination = routes.get(routes.find(node).unwrap()).unwrap();
    let hop = |hop: &Hop| (hop.place, hop.cost.etx());
    destination.hops().iter().map(hop).collect()
}

#[test]
fn next_hops_are_ranked_by_the_whole_path() {
    let mut routes = routes();
    assert_eq!(
        on_route(&mut routes, NOW, 0, route(9, 2, 3.0, 5)),
        RouteChange::Reach
    );
    assert_eq!(
        on_route(&mut routes, NOW, 1, route(9, 4, 1.0, 9)),
        RouteChange::Newer
    );
    assert_eq!(
        on_route(&mut routes, NOW, 2, route(9, 4, 2.5, 5)),
        RouteChange::None
    );
    assert_eq!(ranked(&routes, 9), [(1, 3.0), (2, 3.5), (0, 4.0)]);
    let entry = routes.entry(routes.find(9).unwrap(), &links()).unwrap();
    assert_eq!(entry, route(9, 4, 3.0, 2));
    // Neighbour 1's route leads back here, then it has none.
    on_route(&mut routes, NOW, 1, route(9, 4, 1.0, 0));
    assert_eq!(ranked(&routes, 9), [(2, 3.5), (0, 4.0)]);
    let mut gone = route(9, 4, 0.0, 0);
    gone.metric = Metric::NONE;
    on_route(&mut routes, NOW, 2, gone);
    assert_eq!(ranked(&routes, 9), [(0, 4.0)]);
    assert_eq!(on_route(&mut routes, NOW, 0, gone), RouteChange::Reach);
}

/// Of more neighbours than can be kept the nearest are, in whatever order they come.
#[test]
fn the_best_of_many_are_kept() {
    let mut random = chappe_core::Seed(1).stream(chappe_core::Purpose::Trial(7));
    for _ in 0..200 {
        let mut costs: Vec<u16> = (0..20).map(|_| random.below(30) as u16).collect();
        let mut kept = Kept::default();
        for (place, &cost) in costs.iter().enumerate() {
            kept.insert(u32::from(cost) << 8 | place as u32);
        }
        costs.sort_unstable();
        let found = kept.keys().iter().map(|key| (key >> 8) as u16);
        assert!(found.eq(costs.into_iter().take(NEXT_HOPS_MAX)));
        assert_eq!(usize::from(kept.found), NEXT_HOPS_MAX);
    }
}

/// Goal: what was ranked before and is not ranked again equals a ranking from nothing, whatever neighbours told, links lost, the
/// application shunned and time did. Method: random steps, with more neighbours than are kept.
#[test]
fn what_is_not_ranked_again_is_as_it_would_be() {
    let neighbours = 2 * NEXT_HOPS_MAX as u8;
    for (seed, feasible_only) in [(1, false), (2, true), (3, false), (4, true)] {
        let mut random = chappe_core::Seed(seed).stream(chappe_core::Purpose::Trial(8));
        let mut links = Links::new(Settings::paper().probes, neighbours);
        let mut routes = Routes::new(0, Settings::paper().routing, feasible_only, 4, neighbours);
        let mut now = NOW;
        let mut skipped = 0;
        for node in 0..u16::from(neighbours) {
            let place = links.enter(now, 100 + node).unwrap();
            for number in 0..10 {
                let at = now + Duration::from_secs(number);
                links.on_probe(
                    at,
                    place,
                    (1, number as u16),
                    Some((8 + (node % 3) as u8, 10)),
                );
            }
            links.update(now + Duration::from_secs(9), place);
        }
        for step in 0..4000 {
            now += Duration::from_millis(random.below(if step % 50 == 0 { 40_000 } else { 100 }));
            let place = random.below(u64::from(neighbours)) as u8;
            match random.below(10) {
                0 => links.on_failure(place),
                1 => {
                    routes.expire(now, 0, &links);
                }
                2 => routes.on_advertised(now, 0, &links),
                3 if step % 20 == 0 => routes.shun(now, 0, place, &links),
                _ => {
                    let seq = 2 * (step / 40) as u16 + 2;
                    let metric = 1.0 + random.below(12) as f64;
                    // Some routes lead back here.
                    let via = if random.chance(0.2) { 0 } else { 50 };
                    routes.on_route(now, place, route(9, seq, metric, via), &links, |_| true);
                }
            }
            let Some(known) = routes.get(0).copied() else {
                continue;
            };
            skipped += u32::from(
                known
                    .ranked
                    .is_some_and(|(version, _)| version == links.version()),
            );
            routes.rank(now, 0, &links);
            let (kept, starved) = (*routes.get(0).unwrap(), routes.starved.clone());
            routes.get_mut(0).unwrap().ranked = None;
            routes.rank(now, 0, &links);
            let anew = routes.get(0).unwrap();
            assert_eq!(
                (kept.hops(), kept.found),
                (anew.hops(), anew.found),
                "step {step}"
            );
            assert_eq!(starved, routes.starved, "step {step}");
        }
        assert!(skipped > 1000, "{skipped}");
    }
}

/// Goal: the packets' path does not rank again while a next hop is shunned, and it counts again from the first instant on that it may.
#[test]
fn a_ranking_holds_until_a_shunned_next_hop_returns() {
    let (mut routes, links) = (routes(), links());
    for neighbour in [0, 2] {
        let entry = route(9, 2, 1.0 + f64::from(neighbour), 9);
        routes.on_route(NOW, neighbour, entry, &links, |_| true);
    }
    let place = routes.find(9).unwrap();
    routes.shun(NOW, place, 0, &links);
    assert_eq!(ranked(&routes, 9), [(2, 4.0)]);
    let until = routes.get(place).unwrap().ranked.unwrap().1;
    let returns = until + Duration::from_nanos(1);
    // Routes become too old first, and others come with newer numbers.
    assert!(returns < NOW + Duration::from_secs(64));
    let later = NOW + Duration::from_secs(60);
    for neighbour in [0, 2] {
        let entry = route(9, 4, 1.0 + f64::from(neighbour), 9);
        routes.on_route(later, neighbour, entry, &links, |_| true);
    }
    let until = routes.get(place).unwrap().ranked.unwrap().1;
    assert_eq!(
        until + Duration::from_nanos(1),
        NOW + Duration::from_secs(64)
    );
    routes.rank(until, place, &links);
    assert_eq!(ranked(&routes, 9), [(2, 4.0)]);
    routes.rank(until + Duration::from_nanos(1), place, &links);
    assert_eq!(ranked(&routes, 9), [(0, 2.0), (2, 4.0)]);
}

/// Defect: the metric of an older route was advertised with the newest sequence number, which made it look better than it is.
#[test]
fn a_metric_is_advertised_with_the_number_it_came_with() {
    let mut routes = routes();
    on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
    on_route(&mut routes, NOW, 2, route(9, 4, 8.0, 9));
    let entry = routes.entry(routes.find(9).unwrap(), &links()).unwrap();
    assert_eq!(entry, route(9, 2, 2.0, 1));
}

/// Defect: a number that another neighbour told first was advertised with the next full update, up to 15 s later at every hop, since it was
/// no news when the best next hop told it.
#[test]
fn a_number_is_news_when_the_best_next_hop_tells_it() {
    for renews in [false, true] {
        let routing = crate::config::Routing {
            renews,
            ..Settings::paper().routing
        };
        let mut routes = Routes::new(0, routing, true, 4, 4);
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        on_route(&mut routes, NOW, 2, route(9, 2, 1.5, 9));
        let place = routes.find(9).unwrap();
        routes.on_advertised(NOW, place, &links());
        let first = on_route(&mut routes, NOW, 2, route(9, 4, 1.5, 9));
        assert_eq!(first, RouteChange::Newer);
        // The best route is still the one with the old number.
        let entry = routes.entry(place, &links()).unwrap();
        assert_eq!((entry.seq, entry.via), (2, 1));
        routes.on_advertised(NOW, place, &links());
        let want = match renews {
            true => RouteChange::Newer,
            false => RouteChange::None,
        };
        assert_eq!(on_route(&mut routes, NOW, 0, route(9, 4, 1.0, 9)), want);
        assert_eq!(routes.entry(place, &links()).unwrap().seq, 4);
        routes.on_advertised(NOW, place, &links());
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(9, 4, 1.0, 9)),
            RouteChange::None
        );
    }
}

#[test]
fn next_hops_must_be_nearer_than_all_that_was_advertised() {
    for feasible_only in [true, false] {
        let mut routes = Routes::new(0, Settings::paper().routing, feasible_only, 4, 4);
        on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
        on_route(&mut routes, NOW, 2, route(9, 2, 2.0, 9));
        on_route(&mut routes, NOW, 1, route(9, 2, 1.5, 9));
        assert_eq!(ranked(&routes, 9), [(0, 2.0), (2, 3.0), (1, 3.5)]);
        let place = routes.find(9).unwrap();
        routes.on_advertised(NOW, place, &links());
        // Now 2.0 is advertised: a neighbour that is as far may lead back here. The paper allows it as a detour.
        let detour = (2, 3.0);
        match feasible_only {
            true => assert_eq!(ranked(&routes, 9), [(0, 2.0), (1, 3.5)]),
            false => assert_eq!(ranked(&routes, 9), [(0, 2.0), detour, (1, 3.5)]),
        }
        // The best one is lost, and the last one grows: only routes that may lead back are left.
        on_route(&mut routes, NOW, 0, route(9, 2, 9.0, 9));
        assert_eq!(routes.get(place).unwrap().hops()[0].place, 1);
        assert_eq!(
            on_route(&mut routes, NOW, 1, route(9, 2, 2.5, 9)),
            RouteChange::Reach
        );
        assert_eq!(
            (ranked(&routes, 9), routes.starved()),
            (Vec::new(), &[place][..])
        );
        assert_eq!(routes.get(place).unwrap().wanted(), 4);
        // A newer number makes the longer route feasible.
        on_route(&mut routes, NOW, 1, route(9, 4, 2.5, 9));
        assert_eq!(routes.get(place).unwrap().hops()[0].place, 1);
        assert!(routes.starved().is_empty());
    }
}

#[test]
fn a_route_dies_with_its_sequence_numbers_and_comes_back_with_a_newer_one() {
    let (mut routes, links) = (routes(), links());
    on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
    let place = routes.find(9).unwrap();
    let life = Duration::from_secs(45);
    // The neighbour goes on telling, but the number does not move.
    let late = NOW + life;
    on_route(&mut routes, late, 0, route(9, 2, 1.0, 9));
    assert!(!routes.expire(late, place, &links));
    assert!(routes.expire(late + Duration::from_millis(1), place, &links));
    assert_eq!(
        on_route(&mut routes, late, 2, route(9, 2, 1.0, 9)),
        RouteChange::None
    );
    assert_eq!(
        on_route(&mut routes, late, 2, route(9, 4, 1.0, 9)),
        RouteChange::Reach
    );
}

#[test]
fn routes_that_are_far_behind_do_not_count() {
    let mut routes = routes();
    on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
    on_route(&mut routes, NOW, 2, route(9, 8, 3.0, 9));
    assert_eq!(ranked(&routes, 9).len(), 2);
    on_route(&mut routes, NOW, 2, route(9, 10, 3.0, 9));
    assert_eq!(ranked(&routes, 9), [(2, 4.0)]);
    // Numbers go round.
    assert!(newer(1, u16::MAX - 3) && !newer(u16::MAX - 3, 1) && !newer(4, 4));
}

#[test]
fn a_full_table_gives_up_what_is_out_of_reach_only() {
    let mut routes = routes();
    (1..5).for_each(|node| {
        assert_eq!(
            on_route(&mut routes, NOW, 0, route(node, 2, 1.0, 9)),
            RouteChange::Reach
        )
    });
    assert_eq!(
        on_route(&mut routes, NOW, 0, route(5, 2, 1.0, 9)),
        RouteChange::None
    );
    assert_eq!((routes.find(5), routes.refused), (None, 1));
    let mut gone = route(3, 4, 0.0, 0);
    gone.metric = Metric::NONE;
    on_route(&mut routes, NOW, 0, gone);
    assert_eq!(
        on_route(&mut routes, NOW, 0, route(5, 2, 1.0, 9)),
        RouteChange::Reach
    );
    assert_eq!(routes.find(3), None);
    assert_eq!(
        on_route(&mut routes, NOW, 0, route(0, 7, 1.0, 9)),
        RouteChange::Own(7)
    );
}

#[test]
fn what_was_told_is_forgotten_after_a_while() {
    let mut routes = routes();
    on_route(&mut routes, NOW, 0, route(9, 2, 1.0, 9));
    let place = routes.find(9).unwrap();
    routes.set_backlog(NOW, place, 0, Backlog(80));
    assert_eq!(routes.backlog(NOW, place, 0), Backlog(80));
    assert_eq!(routes.backlog(NOW, place, 1), Backlog(0));
    routes.assume(NOW, place, 0, Backlog(16));
    assert_eq!(routes.backlog(NOW, place, 0), Backlog(96));
    assert_eq!(
        routes.backlog(NOW + Duration::from_millis(1), place, 0),
        Backlog(0)
    );
    routes.forget(0);
    assert_eq!(routes.backlog(NOW, place, 0), Backlog(0));
}
