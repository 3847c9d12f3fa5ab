//! ELF files made by hand: one executable segment, `.eh_frame`, and section headers if wanted.

/// Place of the code, in the file and in memory.
pub const TEXT: u64 = 0x1000;
/// Place of `.eh_frame`.
pub const EH_FRAME: u64 = 0x8000;
pub const X86_64: u16 = 62;
pub const AARCH64: u16 = 183;

pub struct Elf {
    pub machine: u16,
    pub text: Vec<u8>,
    pub eh_frame: Vec<u8>,
    pub section_headers: bool,
    /// Address at which a process begins; 0 = none.
    pub entry: u64,
}

impl Elf {
    pub fn new(machine: u16, text_size: usize, eh_frame: Vec<u8>) -> Elf {
        Elf { machine, text: vec![0xcc; text_size], eh_frame, section_headers: true, entry: 0 }
    }

    /// The file: headers at 0, code at [`TEXT`], `.eh_frame_hdr` before and `.eh_frame` at [`EH_FRAME`].
    pub fn bytes(&self) -> Vec<u8> {
        let hdr = EH_FRAME - 8;
        let size = self.eh_frame.len() as u64;
        let segments = [(1u32, 5u32, TEXT, self.text.len() as u64), (1, 4, hdr, size + 8), (0x6474_e550, 4, hdr, 8)];
        let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
        file.extend([3u16, self.machine].map(u16::to_le_bytes).concat());
        file.extend(1u32.to_le_bytes());
        let sections_at = if self.section_headers { EH_FRAME + size.next_multiple_of(8) + 64 } else { 0 };
        file.extend([self.entry, 64, sections_at].map(u64::to_le_bytes).concat());
        file.extend(0u32.to_le_bytes());
        let count = if self.section_headers { 3 } else { 0 };
        file.extend([64u16, 56, segments.len() as u16, 64, count, 2].map(u16::to_le_bytes).concat());
        for (kind, flags, at, size) in segments {
            file.extend([kind, flags].map(u32::to_le_bytes).concat());
            file.extend([at, at, at, size, size, 0x1000].map(u64::to_le_bytes).concat());
        }
        file.resize(TEXT as usize, 0);
        file.extend(&self.text);
        file.resize(hdr as usize, 0);
        // version 1; pointer pcrel sdata4; no search table
        file.extend([1, 0x1b, 0xff, 0xff]);
        file.extend(4i32.to_le_bytes());
        file.extend(&self.eh_frame);
        if self.section_headers {
            self.add_section_headers(&mut file, sections_at);
        }
        file
    }

    fn add_section_headers(&self, file: &mut Vec<u8>, at: u64) {
        let names = b"\0.eh_frame\0.shstrtab\0";
        let names_at = at - 64;
        file.resize(names_at as usize, 0);
        file.extend(names);
        file.resize(at as usize, 0);
        let mut section = |name: u32, kind: u32, flags: u64, address: u64, offset: u64, size: u64| {
            file.extend([name, kind].map(u32::to_le_bytes).concat());
            file.extend([flags, address, offset, size, 0, 0, 0].map(u64::to_le_bytes).concat());
            file.truncate(file.len() - 8);
            file.extend(0u64.to_le_bytes());
        };
        section(0, 0, 0, 0, 0, 0);
        section(1, 1, 2, EH_FRAME, EH_FRAME, self.eh_frame.len() as u64);
        section(11, 3, 0, 0, names_at, names.len() as u64);
    }
}

/// Writes `.eh_frame`.
#[derive(Default)]
pub struct Frames {
    pub bytes: Vec<u8>,
    cie: usize,
}

impl Frames {
    /// Adds a CIE that the FDEs after it use: addresses pcrel sdata4 by `R`.
    pub fn cie(
        &mut self,
        augmentation: &str,
        code_alignment: u8,
        return_register: u8,
        instructions: &[u8],
    ) -> &mut Frames {
        self.cie = self.bytes.len();
        let mut body = 0u32.to_le_bytes().to_vec();
        body.push(1);
        body.extend(augmentation.as_bytes());
        // data alignment -8
        body.extend([0, code_alignment, 0x78, return_register]);
        if augmentation.starts_with('z') {
            let data: Vec<u8> = augmentation.bytes().filter(|&letter| letter == b'R').map(|_| 0x1b).collect();
            body.push(data.len() as u8);
            body.extend(data);
        }
        body.extend(instructions);
        self.entry(body)
    }

    /// Adds an FDE for `size` bytes at `address`.
    pub fn fde(&mut self, address: u64, size: u32, instructions: &[u8]) -> &mut Frames {
        let id_at = self.bytes.len() + 4;
        let mut body = ((id_at - self.cie) as u32).to_le_bytes().to_vec();
        let pointer_at = EH_FRAME + id_at as u64 + 4;
        body.extend((address.wrapping_sub(pointer_at) as u32).to_le_bytes());
        body.extend(size.to_le_bytes());
        body.push(0);
        body.extend(instructions);
        self.entry(body)
    }

    /// Adds a zero length.
    pub fn terminator(&mut self) -> &mut Frames {
        self.bytes.extend([0; 4]);
        self
    }

    fn entry(&mut self, mut body: Vec<u8>) -> &mut Frames {
        body.resize(body.len().next_multiple_of(4), 0);
        self.bytes.extend((body.len() as u32).to_le_bytes());
        self.bytes.extend(body);
        self
    }

    /// The usual CIE of x86_64: CFA = rsp+8, return address at CFA-8.
    pub fn x86_64() -> Frames {
        let mut frames = Frames::default();
        frames.cie("zR", 1, 16, &[0x0c, 7, 8, 0x90, 1]);
        frames
    }
}
