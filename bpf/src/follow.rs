//! Children of followed processes are followed from their first tick.

use abi::counter::Counter;
use aya_ebpf::EbpfContext;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::count::note;
use crate::kernel::Task;
use crate::maps::{FOLLOWED, TASK_PID, TASK_TGID};

/// `sched_process_fork(parent, child)`: the child exists, but has not run.
#[raw_tracepoint(tracepoint = "sched_process_fork")]
pub fn follow(context: RawTracePointContext) -> i32 {
    // SAFETY: two arguments of the tracepoint, both pointers to tasks.
    let (parent, child) = unsafe {
        let arguments = context.as_ptr() as *const u64;
        (Task(*arguments), Task(*arguments.add(1)))
    };
    let child_pid: u32 = child.field(TASK_TGID.load());
    if child_pid != child.field::<u32>(TASK_PID.load()) {
        // a thread, not a process
        return 0;
    }
    let parent_pid: u32 = parent.field(TASK_TGID.load());
    if FOLLOWED.get_ptr(parent_pid).is_some() && FOLLOWED.insert(child_pid, 0, 0).is_err() {
        note(Counter::LostFork);
    }
    0
}
