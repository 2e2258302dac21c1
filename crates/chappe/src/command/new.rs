//! `chappe new`: a commented scenario to start from.

use std::fs::OpenOptions;
use std::io::{ErrorKind, Write};

use chappe::TEMPLATE;
use chappe_scenario::InputError;

use crate::cli::New;
use crate::failure::Failure;
use crate::terminal;

pub fn run(options: &New) -> Result<u8, Failure> {
    let name = options.file.display();
    let mut file = match OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(&options.file)
    {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {
            let message = format!("{name} exists and was not changed");
            return Err(InputError::new(name.to_string(), message)
                .help("choose another name")
                .into());
        }
        Err(error) => {
            let message = format!("cannot write {name}: {error}");
            return Err(InputError::new(name.to_string(), message).into());
        }
    };
    file.write_all(TEMPLATE.as_bytes())?;
    terminal::tell(&format!("wrote {name}\nnext:  chappe sim {name}"));
    Ok(0)
}
