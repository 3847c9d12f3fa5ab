use super::*;
use crate::Unreadable;
use crate::layout::Platform;
use objects::Architecture;

const RUNTIME: u64 = 0x10_0000;
const PLATFORM: Platform = Platform { architecture: Architecture::X86_64, musl: false, free_threaded: false };

/// A runtime's first bytes.
struct Image(Vec<u8>);

impl Memory for Image {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Unreadable> {
        let start = usize::try_from(address.wrapping_sub(RUNTIME)).unwrap_or(usize::MAX);
        let bytes = start.checked_add(into.len()).and_then(|end| self.0.get(start..end));
        let bytes = bytes.ok_or(Unreadable { address, length: into.len() })?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}

impl Image {
    /// What a build with this layout has.
    fn of(layout: &Layout, hex: u64) -> Image {
        let column = usize::from(layout.version.minor - 13);
        let mut image = Image(vec![0x77; SIZES[column]]);
        image.0[..8].copy_from_slice(&COOKIE);
        image.put(VERSION, hex);
        image.put(FREE_THREADED, layout.free_threaded.into());
        for (_, places, limit) in STRUCTURES {
            image.put(places[column], limit);
        }
        for (field, _, places) in FIELDS.into_iter().chain([COMPACT]) {
            if let (place @ 1.., Some(value)) = (places[column], layout.offset(field)) {
                image.put(place, value.into());
            }
        }
        image
    }

    fn put(&mut self, at: usize, value: u64) {
        self.0[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }
}

fn case(minor: u8) -> (Layout, Image) {
    let layout = Layout::measured(Version::release(3, minor, 2), PLATFORM).expect("a layout");
    let image = Image::of(&layout, 0x0300_02f0 | u64::from(minor) << 16);
    (layout, image)
}

#[test]
fn what_agrees_is_named() {
    for (minor, count) in [(13, 28), (14, 28), (15, 31)] {
        let (layout, image) = case(minor);
        let agreed = compare(&layout, &image, RUNTIME).expect("agreement");
        assert_eq!(agreed.len(), count, "{minor}");
        assert!(agreed.contains(&"thread.current") && agreed.contains(&"frame.code"));
    }
    let old = Layout::measured(Version::release(3, 12, 4), PLATFORM).expect("a layout");
    assert_eq!(compare(&old, &Image(Vec::new()), RUNTIME), Ok(Vec::new()));
    assert_eq!(is_free_threaded(old.version, &Image(Vec::new()), RUNTIME), Ok(false));
}

#[test]
fn every_word_that_differs_is_refused() {
    for minor in 13..=15 {
        let column = usize::from(minor - 13);
        for (field, _, places) in FIELDS.into_iter().chain([COMPACT]).filter(|(_, _, places)| places[column] != 0) {
            for (value, is_small) in [(4092, true), (u64::MAX, false)] {
                let (layout, mut image) = case(minor);
                image.put(places[column], value);
                let refusal = compare(&layout, &image, RUNTIME).expect_err(field);
                let names = match &refusal {
                    LayoutRefusal::Disagrees { field: name, found, .. } => {
                        is_small && (*name, *found) == (field, value)
                    }
                    LayoutRefusal::Implausible { field: name, value: found } => (*name, *found) == (field, value),
                    _ => false,
                };
                assert!(names, "{field}: {refusal}");
            }
        }
        for (structure, places, limit) in STRUCTURES {
            for size in [0, 7, limit + 8, u64::MAX] {
                let (layout, mut image) = case(minor);
                image.put(places[column], size);
                let expected = LayoutRefusal::Implausible { field: structure, value: size };
                assert_eq!(compare(&layout, &image, RUNTIME), Err(expected));
            }
        }
    }
}

#[test]
fn what_are_no_debug_offsets_of_this_build() {
    let (layout, mut image) = case(14);
    image.put(VERSION, 0x030e_03f0);
    let expected = LayoutRefusal::DebugOffsetsVersion { found: 0x030e_03f0, expected: layout.version };
    assert_eq!(compare(&layout, &image, RUNTIME), Err(expected));
    let (_, mut image) = case(14);
    image.put(FREE_THREADED, 1);
    assert_eq!(compare(&layout, &image, RUNTIME), Err(LayoutRefusal::OtherBuild(true)));
    assert_eq!(is_free_threaded(layout.version, &image, RUNTIME), Ok(true));
    image.put(FREE_THREADED, 2);
    let expected = LayoutRefusal::Implausible { field: "free_threaded", value: 2 };
    assert_eq!(compare(&layout, &image, RUNTIME), Err(expected.clone()));
    assert_eq!(is_free_threaded(layout.version, &image, RUNTIME), Err(expected));
    image.0[3] ^= 1;
    for refused in [compare(&layout, &image, RUNTIME).err(), is_free_threaded(layout.version, &image, RUNTIME).err()] {
        assert!(matches!(refused, Some(LayoutRefusal::NoDebugOffsets { address: RUNTIME, .. })), "{refused:?}");
    }
    let (_, mut image) = case(14);
    image.0.truncate(700);
    let refused = compare(&layout, &image, RUNTIME);
    assert!(matches!(refused, Err(LayoutRefusal::Memory { .. })), "{refused:?}");
}
