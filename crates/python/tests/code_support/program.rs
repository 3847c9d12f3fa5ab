//! Programs made by hand: a few functions, a runtime, and no more than a loader needs.

/// `e_machine` of x86_64.
pub const X86_64: u16 = 62;
/// `e_machine` of aarch64.
pub const AARCH64: u16 = 183;
/// Where the code begins, in the file and in memory.
pub const CODE: u64 = 0x1000;
/// Where the runtime, and all variables, begin.
pub const DATA: u64 = 0x20_0000;
/// Bytes of the runtime.
pub const RUNTIME: u64 = 0x8000;

/// A program.
pub struct Program {
    pub machine: u16,
    /// Loaded where it says.
    pub fixed: bool,
    pub code: Vec<u8>,
    /// Names, places from the beginning of the code, and sizes of functions.
    pub functions: Vec<(&'static str, u64, u64)>,
    /// Names, addresses and sizes of data.
    pub objects: Vec<(&'static str, u64, u64)>,
}

fn words<const N: usize>(into: &mut Vec<u8>, words: [u64; N]) {
    words.iter().for_each(|word| into.extend(word.to_le_bytes()));
}

impl Program {
    /// The file.
    pub fn file(&self) -> Vec<u8> {
        let (mut names, mut symbols) = (vec![0], vec![0; 24]);
        let functions = self.functions.iter().map(|&(name, begin, size)| (name, 0x12, 1, CODE + begin, size));
        let objects = self.objects.iter().map(|&(name, address, size)| (name, 0x11, 2, address, size));
        for (name, kind, section, address, size) in functions.chain(objects) {
            words(&mut symbols, [names.len() as u64 | kind << 32 | section << 48, address, size]);
            names.extend(name.bytes().chain([0]));
        }
        let (symbols_at, count) = (0x200, symbols.len() as u64 / 24);
        let names_at = symbols_at + symbols.len() as u64;
        let hash_at = (names_at + names.len() as u64).next_multiple_of(8);
        let dynamic_at = (hash_at + 8 + 4 + 4 * count).next_multiple_of(8);

        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        words(&mut file, [if self.fixed { 2 } else { 3 } | u64::from(self.machine) << 16 | 1 << 32, CODE, 64, 0]);
        words(&mut file, [64 << 32 | 56 << 48, 3]);
        file.resize(64, 0);
        let size = CODE + self.code.len() as u64;
        words(&mut file, [1 | 5 << 32, 0, 0, 0, size, size, 0x1000]);
        words(&mut file, [1 | 6 << 32, size, DATA, DATA, 0, 0x10_000, 0x1000]);
        words(&mut file, [2 | 6 << 32, dynamic_at, dynamic_at, dynamic_at, 0x100, 0x100, 8]);
        file.resize(symbols_at as usize, 0);
        file.extend(symbols);
        file.extend(&names);
        file.resize(hash_at as usize, 0);
        words(&mut file, [1 | count << 32]);
        file.resize(dynamic_at as usize, 0);
        words(&mut file, [4, hash_at, 5, names_at, 6, symbols_at, 10, names.len() as u64, 0, 0]);
        assert!(file.len() < CODE as usize);
        file.resize(CODE as usize, 0);
        file.extend(&self.code);
        file
    }
}
