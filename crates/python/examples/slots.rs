//! Where the C libraries among these files keep the values of pthread keys.

fn main() {
    for path in std::env::args_os().skip(1) {
        let result = std::fs::read(&path).map(|bytes| python::slot::read(&bytes));
        match result {
            Ok(Ok(found)) => println!("{}: {:?} by {:?}", path.display(), found.layout, found.evidence),
            Ok(Err(refusal)) => println!("{}: {refusal}", path.display()),
            Err(error) => println!("{}: {error}", path.display()),
        }
    }
}
