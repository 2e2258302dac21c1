//! Everything that is tested through the public interface, in one program: linking is most of a test build.

mod bianchi;
mod contract;
mod dot15d4;
mod drand;
mod edca;
mod ideal;
mod nature;
mod priorities;
mod script;
mod scripts;
mod zmac;
mod zones;
