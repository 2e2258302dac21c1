//! Unwinding in programs that are shipped: there is none.
//!
//! Such a program has no symbols and no unwind tables, and ends where it panics (`cargo xtask dist`), so a backtrace of it is empty and no
//! stack is ever unwound. The standard library's search through tables that are not there, with its reader of debugging information and the
//! unwinder behind it, is a fortieth of the program. They call these functions, and the linker leaves the rest out.

use std::ffi::{c_int, c_void};

/// The stack has no further frame (Itanium C++ ABI, exception handling, section 1.3.1).
const END_OF_STACK: c_int = 5;

/// Takes the place of the unwinder's function of this name. `each` would be called for each frame of the stack.
#[unsafe(no_mangle)]
extern "C" fn _Unwind_Backtrace(_each: *const c_void, _context: *mut c_void) -> c_int {
    END_OF_STACK
}

/// Takes the place of the unwinder's functions of these names. The standard library was built for programs that unwind and names them where a
/// stack would be unwound further, and where it would say what is to be done in a frame. Nothing comes there.
macro_rules! never_called {
    ($($name:ident)*) => {$(
        #[unsafe(no_mangle)]
        extern "C" fn $name() -> ! {
            std::process::abort()
        }
    )*};
}

never_called! {
    _Unwind_Resume
    _Unwind_GetLanguageSpecificData
    _Unwind_GetIPInfo
    _Unwind_GetIP
    _Unwind_GetRegionStart
    _Unwind_GetTextRelBase
    _Unwind_GetDataRelBase
    _Unwind_SetGR
    _Unwind_SetIP
}
