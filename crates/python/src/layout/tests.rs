use super::*;

const PLATFORM: Platform = Platform { architecture: Architecture::X86_64, musl: false, free_threaded: false };

fn version(text: &str) -> Version {
    Version::parse(text).expect("a version")
}

#[test]
fn what_was_not_measured_is_refused() {
    for text in ["3.13.0rc2", "3.15.0a7", "3.7.4b1"] {
        assert_eq!(Layout::measured(version(text), PLATFORM), Err(LayoutRefusal::PreRelease(version(text))));
    }
    for text in ["2.7.18", "3.5.10", "3.16.0", "4.0.0"] {
        assert_eq!(Layout::measured(version(text), PLATFORM), Err(LayoutRefusal::UnknownVersion(version(text))));
    }
    for text in ["3.7.0", "3.7.3"] {
        assert_eq!(Layout::measured(version(text), PLATFORM), Err(LayoutRefusal::UnknownRelease(version(text))));
    }
    let free = Platform { free_threaded: true, ..PLATFORM };
    for text in ["3.12.0", "3.14.0"] {
        assert_eq!(Layout::measured(version(text), free), Err(LayoutRefusal::FreeThreaded(version(text))));
    }
    assert!(Layout::measured(version("3.7.4"), PLATFORM).is_ok() && Layout::measured(version("3.13.1"), free).is_ok());
}

#[test]
fn only_the_mutex_tells_architectures_apart() {
    for minor in 6..=15 {
        let of = |architecture, musl| {
            let platform = Platform { architecture, musl, ..PLATFORM };
            Layout::measured(Version::release(3, minor, 9), platform).expect("a layout").offsets()
        };
        let x86_64 = of(Architecture::X86_64, false);
        let differing: Vec<_> =
            of(Architecture::Aarch64, false).into_iter().zip(&x86_64).filter(|(one, other)| one != *other).collect();
        let expected = if (7..=11).contains(&minor) { 2 } else { 0 };
        assert_eq!(differing.len(), expected, "{minor}: {differing:?}");
        // two mutexes of 8 bytes more
        assert!(differing.iter().all(|(one, other)| one.0.starts_with("runtime.") && one.1 == other.1 + 16));
        assert_eq!(of(Architecture::Aarch64, true), x86_64);
        assert_eq!(of(Architecture::X86_64, true), x86_64);
    }
}

#[test]
fn one_offset_can_be_changed() {
    let layout = Layout::measured(version("3.12.3"), PLATFORM).expect("a layout");
    for (name, value) in layout.offsets() {
        let other = layout.with(name, value + 8);
        assert_eq!(other.offset(name), Some(value + 8));
        let others: Vec<_> = other.offsets().into_iter().filter(|offset| !layout.offsets().contains(offset)).collect();
        assert_eq!(others, [(name, value + 8)]);
    }
    assert_eq!(layout.with("thread.base_frame", 80), layout, "3.12 has none");
    assert_eq!(layout.offset("thread.base_frame"), None);
}

#[test]
fn what_the_walker_is_told() {
    let facts = |text| Layout::measured(version(text), PLATFORM).expect("a layout").facts(7, Slot::default());
    let old = facts("3.10.4");
    assert_eq!((old.run, old.flags, old.owner, old.native_thread_id), (run::EVERY, flags::LASTI_IS_INDEX, NONE, NONE));
    let entries = facts("3.11.4");
    assert_eq!((entries.run, entries.flags, entries.owner, entries.cframe_current), (run::ENTRY, 0, 68, 8));
    let newest = facts("3.15.1");
    assert_eq!((newest.run, newest.tags, newest.base_frame, newest.code_type), (run::SHIM, 3, 80, 7));
}
