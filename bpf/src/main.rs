//! The BPF programs: entry points, maps, and the current task as the walkers see it. Thin: what can be decided
//! without a BPF helper lives in `walk` and is tested in user space.
//!
//! * [`sample`]: runs at every tick of a CPU's perf event.
//! * [`follow`]: runs at every fork and exec, so that the children of a followed process are followed from their first
//!   tick, and no process is walked by the mappings of another image.
//! * [`remap`]: runs when the kernel looks for free memory, so that no mapping is believed that is gone.
#![no_std]
#![no_main]
#![feature(asm_experimental_arch)]

mod chain;
mod code;
mod count;
mod defer;
mod emit;
mod follow;
mod kernel;
mod maps;
mod registers;
mod remap;
mod sample;
mod target;

#[cfg(not(any(bpf_target_arch = "x86_64", bpf_target_arch = "aarch64")))]
compile_error!("name the architecture whose kernel runs the object: --cfg bpf_target_arch=\"x86_64\" or \"aarch64\"");

#[panic_handler]
fn panic(_: &core::panic::PanicInfo) -> ! {
    loop {}
}

#[unsafe(link_section = "license")]
#[unsafe(no_mangle)]
static LICENSE: [u8; 13] = *b"Dual MIT/GPL\0";

/// Read by the loader before anything else; see [`abi::HASH`].
#[unsafe(link_section = "wholestack.abi")]
#[unsafe(no_mangle)]
static ABI: [u8; 8] = abi::HASH.to_le_bytes();

/// The architecture of the kernel that the object is for.
#[unsafe(link_section = "wholestack.arch")]
#[unsafe(no_mangle)]
#[cfg(bpf_target_arch = "x86_64")]
static ARCHITECTURE: [u8; 6] = *b"x86_64";
#[unsafe(link_section = "wholestack.arch")]
#[unsafe(no_mangle)]
#[cfg(bpf_target_arch = "aarch64")]
static ARCHITECTURE: [u8; 7] = *b"aarch64";

#[cfg(bpf_target_arch = "x86_64")]
type Native = walk::X86_64;
#[cfg(bpf_target_arch = "aarch64")]
type Native = walk::Aarch64;
