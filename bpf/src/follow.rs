//! Processes that begin: followed from their first tick, and not taken for what had their id before.

use abi::counter::Counter;
use aya_ebpf::EbpfContext;
use aya_ebpf::helpers::bpf_get_current_pid_tgid;
use aya_ebpf::macros::raw_tracepoint;
use aya_ebpf::programs::RawTracePointContext;

use crate::count::note;
use crate::kernel::Task;
use crate::maps::{FOLLOWED, PROCESSES, TASK_PID, TASK_TGID};
use crate::remap::forget;

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
    // an entry is that of a process that ended, and of whose end user space has not read yet
    if PROCESSES.get_ptr(child_pid).is_some() {
        forget(child_pid);
    }
    0
}

/// `sched_process_exec(task, old_pid, binprm)`: the task has a new image and has not run in it.
#[raw_tracepoint(tracepoint = "sched_process_exec")]
pub fn exec(_context: RawTracePointContext) -> i32 {
    forget((bpf_get_current_pid_tgid() >> 32) as u32);
    0
}
