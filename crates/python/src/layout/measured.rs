//! Offsets of CPython's structures by version, measured.
//!
//! A row for each field, a column for each minor version from 3.6 to 3.15; `X` where a version has no such field. The
//! releases measured: 3.6.15, 3.7.16, 3.8.18, 3.9.2, 3.9.18, 3.10.13, 3.11.2, 3.11.7, 3.12.1, 3.12.10, 3.13.0, 3.13.18, 3.14.10, 3.15.2; by
//! the DWARF of real builds, by `offsetof` compiled against their own headers (x86_64, and aarch64 under qemu-user), and on
//! live processes. Within a minor version final releases do not differ in these fields, but for `_PyRuntime` of 3.7.0
//! to 3.7.3 (see [`super::Layout::measured`]). The two architectures differ only where a row has two lists: there
//! `pthread_mutex_t` lies in front, which has 40 bytes, but 48 in glibc on aarch64.

/// The oldest minor version of 3 that was measured.
pub(super) const FIRST: u8 = 6;
/// The newest one.
pub(super) const LAST: u8 = 15;
/// Cell of a field that the version does not have.
const X: u32 = u32::MAX;

/// An offset, which all versions have or only some.
pub(super) trait Offset {
    fn from_cell(cell: u32) -> Self;
    fn get(&self) -> Option<u32>;
    fn get_mut(&mut self) -> Option<&mut u32>;
}

impl Offset for u32 {
    fn from_cell(cell: u32) -> u32 {
        cell
    }
    fn get(&self) -> Option<u32> {
        Some(*self)
    }
    fn get_mut(&mut self) -> Option<&mut u32> {
        Some(self)
    }
}

impl Offset for Option<u32> {
    fn from_cell(cell: u32) -> Option<u32> {
        (cell != X).then_some(cell)
    }
    fn get(&self) -> Option<u32> {
        *self
    }
    fn get_mut(&mut self) -> Option<&mut u32> {
        self.as_mut()
    }
}

macro_rules! measured {
    ($(
        $(#[$doc:meta])*
        $name:ident $group:literal {
            $($(#[$field_doc:meta])* $field:ident: $type:ty = [$($cell:tt)*] $(wide_mutex [$($wide:tt)*])?;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)*
        }

        impl $name {
            /// `column`: minor version less [`FIRST`]. `wide_mutex`: `pthread_mutex_t` has 48 bytes.
            #[allow(unused_variables)]
            pub(super) fn measured(column: usize, wide_mutex: bool) -> $name {
                $name {
                    $($field: {
                        let row = row!($($cell)*);
                        $(let row = if wide_mutex { row!($($wide)*) } else { row };)?
                        <$type as Offset>::from_cell(row[column])
                    },)*
                }
            }

            pub(super) fn each(&self, visit: &mut dyn FnMut(&'static str, u32)) {
                $(if let Some(value) = self.$field.get() {
                    visit(concat!($group, ".", stringify!($field)), value);
                })*
            }

            pub(super) fn each_mut(&mut self, visit: &mut dyn FnMut(&'static str, &mut u32)) {
                $(if let Some(value) = self.$field.get_mut() {
                    visit(concat!($group, ".", stringify!($field)), value);
                })*
            }
        }
    )*};
}

macro_rules! row {
    ($($cell:expr)*) => { [$($cell),*] as [u32; (LAST - FIRST) as usize + 1] };
}

measured! {
    /// Fields of `_PyRuntimeState`, which `_PyRuntime` is; 3.6 has none.
    Runtime "runtime" {
        /// `core_initialized`: int, 1 when the core is.
        core_initialized: Option<u32> =  [X 4 8 8 8 12 12 596 772 900];
        /// `initialized`: int, 1 when `Py_Initialize` has done its work.
        initialized: Option<u32> =       [X 0 12 12 12 16 16 600 776 904];
        /// `interpreters.head`: address of the newest interpreter.
        interpreters_head: Option<u32> = [X 24 32 32 32 40 40 632 808 936];
        /// `interpreters.main`: address of the oldest one.
        interpreters_main: Option<u32> = [X 32 40 40 40 48 48 640 816 944];
        /// `interpreters.next_id`: number of the next one, 64 bits.
        interpreters_next: Option<u32> = [X 40 48 48 48 56 56 648 824 952];
        /// `gilstate.tstate_current`: state of the thread that holds the GIL.
        tstate_current: Option<u32> =    [X 1480 1368 568 568 576 X X X X]
            wide_mutex                   [X 1496 1384 584 584 592 X X X X];
        /// `autoTSSkey`: int, 1 when there is a key, and the key.
        auto_tss_key: Option<u32> =      [X 1504 1392 584 584 592 1544 2160 2336 X]
            wide_mutex                   [X 1520 1408 600 600 608 1544 2160 2336 X];
    }

    /// Fields of `PyInterpreterState`.
    Interpreter "interpreter" {
        /// `next`: address of the next older interpreter.
        next: u32 =         [0 0 0 0 0 0 0 7264 7272 7264];
        /// `id`: its number, 64 bits.
        id: Option<u32> =   [X 16 16 24 24 48 8 7272 7280 7272];
        /// `tstate_head`, `threads.head`: address of its newest thread's state.
        threads_head: u32 = [8 8 8 8 8 16 72 7344 7344 7336];
    }

    /// Fields of `PyThreadState`.
    Thread "thread" {
        /// `prev`: address of the next newer state of the interpreter.
        prev: u32 =                   [0 0 0 0 0 0 0 0 0 0];
        /// `next`: address of the next older one.
        next: u32 =                   [8 8 8 8 8 8 8 8 8 8];
        /// `interp`: address of its interpreter.
        interp: u32 =                 [16 16 16 16 16 16 16 16 16 16];
        /// `thread_id`: what `pthread_self` gives in the thread.
        thread_id: u32 =              [152 176 176 176 176 152 136 152 152 176];
        /// `native_thread_id`: what `gettid` gives in it.
        native_thread_id: Option<u32> = [X X X X X 160 144 160 160 184];
        /// `frame`, `current_frame`: address of the innermost frame. 3.11 and 3.12: `cframe`, address of a `_PyCFrame`.
        current: u32 =                [24 24 24 24 24 56 56 72 72 72];
        /// In a `_PyCFrame`: `current_frame`.
        cframe_current: Option<u32> = [X X X X X 8 0 X X X];
        /// `base_frame`: address of the frame behind the outermost one.
        base_frame: Option<u32> =     [X X X X X X X X X 80];
    }

    /// Fields of `PyFrameObject`, from 3.11 on of `_PyInterpreterFrame`.
    Frame "frame" {
        /// `f_code`, `f_executable`: address of the code object; see [`super::Layout::tags`].
        code: u32 =          [32 32 32 32 32 32 0 0 0 0];
        /// `f_back`, `previous`: address of the caller's frame.
        back: u32 =          [24 24 24 24 24 48 8 8 8 8];
        /// `f_lasti`, `prev_instr`, `instr_ptr`: see [`super::Lasti`].
        lasti: u32 =         [120 104 104 104 96 56 56 56 56 56];
        /// The byte that tells how a run ends. 3.11: `is_entry`; later `owner`.
        owner: Option<u32> = [X X X X X 68 70 70 74 74];
    }

    /// Fields of `PyCodeObject`.
    Code "code" {
        /// `co_argcount`, int.
        argcount: u32 =                [16 16 16 16 16 56 52 52 52 52];
        /// `co_posonlyargcount`, int.
        posonlyargcount: Option<u32> = [X X 20 20 20 60 56 56 56 56];
        /// `co_kwonlyargcount`, int.
        kwonlyargcount: u32 =          [20 20 24 24 24 64 60 60 60 60];
        /// `co_flags`, int.
        flags: u32 =                   [32 32 36 36 36 48 48 48 48 48];
        /// `co_firstlineno`, int.
        firstlineno: u32 =             [36 36 40 40 40 72 68 68 68 68];
        /// `co_filename`, address of a string.
        filename: u32 =                [96 96 104 104 104 112 112 112 112 112];
        /// `co_name`, address of a string.
        name: u32 =                    [104 104 112 112 112 120 120 120 120 120];
        /// `co_qualname`, address of a string.
        qualname: Option<u32> =        [X X X X X 128 128 128 128 128];
        /// `co_lnotab`, `co_linetable`, address of a bytes object.
        linetable: u32 =               [112 112 120 120 120 136 136 136 136 136];
        /// `co_code`, address of a bytes object: the instructions.
        bytecode: Option<u32> =        [40 40 48 48 48 X X X X X];
        /// `co_code_adaptive`: the instructions themselves.
        code_adaptive: Option<u32> =   [X X X X X 184 192 200 208 208];
        /// Bytes of the structure, as `tp_basicsize` says: up to the instructions where they lie in it.
        size: u32 =                    [144 144 176 176 176 184 192 200 208 208];
    }

    /// Fields that objects of all types have, or all whose size varies.
    Object "object" {
        /// `ob_type`: address of the type.
        ob_type: u32 = [8 8 8 8 8 8 8 8 8 8];
        /// `ob_size`, 64 bits: bytes of a bytes object, instructions of 2 bytes of a code object from 3.11 on.
        ob_size: u32 = [16 16 16 16 16 16 16 16 16 16];
    }

    /// Fields of `PyTypeObject`.
    Type "type" {
        /// `tp_name`: address of its name, which ends in 0.
        name: u32 =      [24 24 24 24 24 24 24 24 24 24];
        /// `tp_basicsize`, 64 bits.
        basicsize: u32 = [32 32 32 32 32 32 32 32 32 32];
        /// `tp_flags`, 64 bits.
        flags: u32 =     [168 168 168 168 168 168 168 168 168 168];
        /// `tp_base`: address of the type that it extends.
        base: u32 =      [256 256 256 256 256 256 256 256 256 256];
        /// `tp_members`: address of an array of `PyMemberDef`.
        members: u32 =   [240 240 240 240 240 240 240 240 240 240];
    }

    /// Fields of strings and of bytes objects.
    Text "text" {
        /// `PyASCIIObject.length`, 64 bits: characters.
        length: u32 =  [16 16 16 16 16 16 16 16 16 16];
        /// `PyASCIIObject.state`, 32 bits.
        state: u32 =   [32 32 32 32 32 32 32 32 32 32];
        /// `sizeof(PyASCIIObject)`: the characters of an ASCII string.
        ascii: u32 =   [48 48 48 48 48 48 40 40 40 40];
        /// `sizeof(PyCompactUnicodeObject)`: the characters of another compact string; of one that is not compact (up to
        /// 3.11), their address.
        compact: u32 = [72 72 72 72 72 72 56 56 56 56];
        /// `PyASCIIObject.wstr`, address of the characters as `wchar_t`.
        wide: Option<u32> =        [40 40 40 40 40 40 X X X X];
        /// `PyCompactUnicodeObject.wstr_length`: how many of them.
        wide_length: Option<u32> = [64 64 64 64 64 64 X X X X];
        /// `PyBytesObject.ob_sval`: the bytes.
        bytes: u32 =   [32 32 32 32 32 32 32 32 32 32];
    }
}
