//! What a file says of itself as a Python, and what its code says when it is carried out symbolically: any file, and real code
//! in which bytes were changed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use python::code::{Function, derive, evaluate};
use python::eval_loop;
use python::file::PythonFile;
use python::slot;

/// Bytes of a changed body that are evaluated.
const BODY: usize = 4096;

fuzz_target!(|bytes: &[u8]| {
    let _ = slot::read(bytes);
    let Ok(file) = PythonFile::parse(bytes) else { return };
    let _ = file.identify();
    let derived = derive(&file).map(|derived| derived.place);
    // the same bytes give the same answer
    assert_eq!(derive(&file).map(|derived| derived.place).ok(), derived.ok());
    if let Ok(pieces) = eval_loop::find(&file) {
        assert!(pieces.len() <= eval_loop::MAX_PIECES);
        assert!(pieces.iter().all(|piece| piece.begin < piece.end && piece.end <= bytes.len() as u64));
        assert!(pieces.windows(2).all(|pair| pair[0].end <= pair[1].begin));
    }
    for function in Function::ALL {
        let Some(symbol) = file.symbol(function.name()) else { continue };
        let length = bytes.len().min(BODY);
        let _ = evaluate(&file.patched(symbol.address, &bytes[bytes.len() - length..]), function);
    }
});
