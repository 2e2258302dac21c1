//! The bounds that hold for one run, and what happens to a run that exceeds them.

use std::sync::Arc;

use chappe_lab::run::RunError;
use chappe_results::Run;
use chappe_scenario::Network;

use super::{Pacifier, Prepared, TransferBound};

/// Fails if a run carried more than the bound of carrier sense allows, which is a defect of Chappe. Members in turns do not defer to frames that they
/// sense, so their runs are not checked here.
pub fn check(with: &Pacifier, prepared: &Prepared, run: &Run) -> Result<(), RunError> {
    if with.protocol.turns {
        return Ok(());
    }
    Proven::by_carrier_sense(prepared).check(with, run)
}

/// The bounds that hold for a run, one for each transfer, or none at all.
#[derive(Clone)]
pub(super) struct Proven {
    /// The model that they follow from.
    pub(super) name: &'static str,
    pub(super) bounds: Arc<[TransferBound]>,
}

impl Proven {
    pub(super) fn by_carrier_sense(prepared: &Prepared) -> Proven {
        Proven {
            name: TransferBound::NAME,
            bounds: prepared.bounds.clone().into(),
        }
    }

    /// Members in turns, unless [`Proven::under_interference`] is asked for.
    pub(super) fn nothing() -> Proven {
        Proven {
            name: TransferBound::UNDER_INTERFERENCE,
            bounds: [].into(),
        }
    }

    /// What holds for members in turns, who send whether they sense frames or not. None on networks for which the program proves nothing.
    pub(super) fn under_interference(
        with: &Pacifier,
        network: &Network,
    ) -> Result<Proven, RunError> {
        let each = (network.transfers.iter())
            .map(|transfer| TransferBound::under_interference(with, network, transfer));
        let bounds: Option<Vec<_>> = each.collect::<Result<_, _>>()?;
        Ok(Proven {
            name: TransferBound::UNDER_INTERFERENCE,
            bounds: bounds.unwrap_or_default().into(),
        })
    }

    /// Fails if a run carried more than it can.
    pub(super) fn check(&self, with: &Pacifier, run: &Run) -> Result<(), RunError> {
        for (index, bound) in self.bounds.iter().enumerate() {
            let flows: Vec<_> = (run.flows.iter())
                .filter(|flow| flow.transfer == index)
                .collect();
            if let Some(excess) = bound.exceeded(&flows, with.protocol.config.common().payload) {
                return Err(RunError::Defect(format!("seed {}: {excess}", run.seed)));
            }
        }
        Ok(())
    }
}
