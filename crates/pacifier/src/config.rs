//! The configuration of a node, and with it the choice between the paper's protocols and the improved variant.

use chappe_core::Caps;

use crate::common::{Common, ConfigError};
use crate::{improved, paper};

/// The parameters of a [`Node`](crate::Node). All nodes of a network run the same protocol.
#[derive(Clone, Debug, PartialEq)]
pub enum Config {
    /// Pacifier, TREE+RL, TREE or MORE.
    Paper(paper::Config),
    /// The improved variant, with its own settings.
    Improved(improved::Config),
}

impl Config {
    /// The parameters that both protocols have.
    pub fn common(&self) -> &Common {
        match self {
            Config::Paper(config) => &config.common,
            Config::Improved(config) => &config.common,
        }
    }

    /// The same, to be changed.
    pub fn common_mut(&mut self) -> &mut Common {
        match self {
            Config::Paper(config) => &mut config.common,
            Config::Improved(config) => &mut config.common,
        }
    }

    /// The same configuration with other common parameters.
    pub fn with_common(mut self, common: Common) -> Config {
        *self.common_mut() = common;
        self
    }

    /// The same configuration with `k` packets of `payload` octets in a batch.
    pub fn with_batch(mut self, k: usize, payload: usize) -> Config {
        let common = self.common_mut();
        (common.k, common.payload) = (k, payload);
        self
    }

    /// Checks the values that have limits.
    pub fn check(&self) -> Result<(), ConfigError> {
        match self {
            Config::Paper(config) => config.check(),
            Config::Improved(config) => config.check(),
        }
    }

    /// Checks that a link can carry the frames of this configuration.
    pub fn check_link(&self, caps: &Caps) -> Result<(), ConfigError> {
        match self {
            Config::Paper(config) => config.check_link(caps),
            Config::Improved(config) => config.check_link(caps),
        }
    }
}

/// Pacifier with the paper's parameters.
impl Default for Config {
    fn default() -> Config {
        Config::Paper(paper::Config::default())
    }
}

impl From<paper::Variant> for Config {
    fn from(variant: paper::Variant) -> Config {
        Config::Paper(paper::Config::new(variant))
    }
}

impl From<paper::Config> for Config {
    fn from(config: paper::Config) -> Config {
        Config::Paper(config)
    }
}

impl From<improved::Config> for Config {
    fn from(config: improved::Config) -> Config {
        Config::Improved(config)
    }
}
