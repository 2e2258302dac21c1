//! `chappe new`: a commented scenario to start from.

use std::io::ErrorKind;

use chappe::systems;
use chappe_scenario::InputError;
use chappe_store::StoreError;

use crate::cli::New;
use crate::failure::Failure;
use crate::terminal;

pub fn run(options: &New) -> Result<u8, Failure> {
    let name = options.file.display();
    // Clap has refused every other name.
    let template = systems::named(&options.system).map_or("", |system| system.template);
    match chappe_sys::write_new(&options.file, 0o644, template.as_bytes()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = format!("{name} exists and was not changed");
            return Err(InputError::new(name.to_string(), message)
                .help("choose another name")
                .into());
        }
        Err(error) => {
            return Err(StoreError::Io {
                path: options.file.clone(),
                error,
            }
            .into());
        }
    }
    terminal::tell(&format!("wrote {name}\nnext:  chappe sim {name}"));
    Ok(0)
}
