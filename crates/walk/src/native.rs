//! One native frame: by a rule made from `.eh_frame`, or by the frame pointer where there is none.

use abi::process::{Mapping, code};
use abi::python::Entry;
use abi::stop::Stop;
use abi::table::{Rule, bx, cfa, fp, ra};
use abi::word::{self, flag};

use crate::{Architecture, EvalLoop, Target, Walk, python, state};

/// The caller's registers as far as they are followed.
struct Caller {
    pc: u64,
    sp: u64,
    fp_at: u64,
    bx_at: u64,
    state: u32,
    /// Where it is was not told by unwind information: it is believed if it lies behind a call, in code.
    unproven: bool,
}

/// Takes the frame in `walk.registers` and goes to its caller. `Err` is the stack's last word.
#[inline(always)]
pub(crate) fn turn<A: Architecture, T: Target>(target: &mut T, entry: &Entry, walk: &mut Walk) -> Result<(), u64> {
    let pc = walk.registers.pc;
    let flags = word_flags(walk.state);
    // a call may be the last instruction of its function: the caller is looked up by the byte before the return address
    let at = if walk.state & state::EXACT != 0 { pc } else { pc.wrapping_sub(1) };
    let Some(mapping) = target.mapping(at) else {
        // an address that a walk led to is no frame if there is no code
        if walk.state & state::EXACT != 0 {
            walk.push(word::raw(flags, pc));
        }
        return Err(word::end(Stop::NoMapping as u8, 0, 0));
    };
    let offset = pc.wrapping_sub(mapping.begin).wrapping_add(mapping.file_offset);
    let offset_of_call = at.wrapping_sub(mapping.begin).wrapping_add(mapping.file_offset);
    let rule = match mapping.code {
        code::TABLE => target.rule(&mapping, offset_of_call),
        _ => Rule::NONE,
    };
    // nothing calls a handler's return trampoline: it is named by its own address, not by the byte before
    let flags = if rule.cfa == cfa::SIGNAL { flags | flag::EXACT } else { flags };
    if mapping.code == code::ANONYMOUS {
        python::push_native(walk, EvalLoop::No, 0, word::raw(flags, pc));
    } else {
        let what = target.eval_loop(&mapping, offset_of_call);
        // those further out wait for what they have called
        let is_asked = what != EvalLoop::No && !python::was_met(walk);
        let moment = if is_asked { target.moment(offset_of_call) } else { 0 };
        python::push_native(walk, what, moment, word::object(flags, mapping.object, offset));
    }
    if mapping.code == code::PENDING {
        return Err(stop(Stop::TableNotReady, &mapping));
    }
    let rule = if rule.cfa == cfa::NONE {
        let interrupted = walk.state & state::EXACT != 0;
        target.exit(&mapping, pc, interrupted).ok_or_else(|| stop(Stop::TableNotReady, &mapping))?
    } else {
        rule
    };
    let caller = match rule.cfa {
        cfa::NONE => by_frame_pointer(target, walk, &mapping)?,
        cfa::SIGNAL => by_signal_frame::<A, T>(target, walk)?,
        _ => by_rule::<A, T>(target, walk, &rule, &mapping)?,
    };
    if caller.unproven {
        follows_call::<A, T>(target, caller.pc, &mapping)?;
    }
    let low = walk.registers.sp;
    walk.registers.pc = caller.pc;
    walk.registers.sp = caller.sp;
    walk.fp_at = caller.fp_at;
    walk.bx_at = caller.bx_at;
    walk.state = caller.state;
    if walk.python.held != 0 {
        python::enter(target, entry, walk, low);
    }
    Ok(())
}

#[inline(always)]
fn word_flags(bits: u32) -> u8 {
    let exact = if bits & state::EXACT != 0 { flag::EXACT } else { 0 };
    let by_frame_pointer = if bits & state::BY_FRAME_POINTER != 0 { flag::BY_FRAME_POINTER } else { 0 };
    exact | by_frame_pointer
}

#[inline(always)]
fn stop(stop: Stop, mapping: &Mapping) -> u64 {
    word::end(stop as u8, mapping.object, 0)
}

#[inline(always)]
fn by_rule<A: Architecture, T: Target>(
    target: &mut T,
    walk: &mut Walk,
    rule: &Rule,
    mapping: &Mapping,
) -> Result<Caller, u64> {
    let cfa = cfa_of::<A, T>(target, walk, rule, mapping)?;
    let exact = walk.state & state::EXACT != 0;
    let in_register = !A::CALL_PUSHES || rule.ra == ra::REGISTER;
    // where the return address is not on the stack, a leaf may have its CFA at the stack pointer
    let ascends =
        cfa > walk.registers.sp || (in_register && exact && cfa == walk.registers.sp) || rule.cfa == cfa::OTHER_STACK;
    if !ascends || cfa & 7 != 0 {
        return Err(stop(Stop::NotAscending, mapping));
    }
    let return_address = match rule.ra {
        ra::REGISTER => Some(register_value::<A, T>(target, walk, rule.extra as u8, mapping)?),
        ra::SAVED => target.read_u64(cfa.wrapping_add(rule.extra as i64 as u64)),
        ra::LINK_REGISTER if exact => Some(walk.registers.lr),
        ra::LINK_REGISTER => return Err(stop(Stop::LostRegister, mapping)),
        _ => target.read_u64(cfa.wrapping_sub(8)),
    };
    let Some(return_address) = return_address else { return Err(stop(Stop::UnreadableStack, mapping)) };
    let unproven = rule.ra == ra::CHECKED;
    let pc = checked_return_address(return_address, walk, mapping, unproven)?;
    let (mut fp_at, mut fp_lost) = frame_pointer(target, walk, rule, cfa, mapping)?;
    if unproven && fp_lost != 0 {
        // the code does not say where it is, but this frame's may point to a record that ends where the return address does
        let record = value_of_frame_pointer(target, walk, mapping).unwrap_or(0);
        if record.wrapping_add(16) == cfa {
            (fp_at, fp_lost) = (record, 0);
        }
    }
    let (bx_at, bx_lost) = followed(walk, rule, cfa);
    Ok(Caller { pc, sp: cfa, fp_at, bx_at, state: fp_lost | bx_lost, unproven })
}

#[inline(always)]
fn checked_return_address(address: u64, walk: &Walk, mapping: &Mapping, unproven: bool) -> Result<u64, u64> {
    let address = address & !walk.code_mask;
    if address == 0 || address >> word::TAG_SHIFT != 0 {
        return Err(stop(if unproven { Stop::NoCall } else { Stop::BadReturnAddress }, mapping));
    }
    Ok(address)
}

/// Stops unless there is a call that ends at `address`.
#[inline(always)]
fn follows_call<A: Architecture, T: Target>(target: &mut T, address: u64, mapping: &Mapping) -> Result<(), u64> {
    if target.mapping(address.wrapping_sub(1)).is_none() {
        return Err(stop(Stop::NoMapping, mapping));
    }
    match target.read_code(address.wrapping_sub(8)) {
        Some(code) if A::ends_in_call(code) => Ok(()),
        _ => Err(stop(Stop::NoCall, mapping)),
    }
}

#[inline(always)]
fn cfa_of<A: Architecture, T: Target>(target: &mut T, walk: &Walk, rule: &Rule, mapping: &Mapping) -> Result<u64, u64> {
    let offset = rule.cfa_offset as i64 as u64;
    let base = match rule.cfa {
        cfa::SP | cfa::DEREF_SP => walk.registers.sp,
        cfa::FP | cfa::DEREF_FP => value_of_frame_pointer(target, walk, mapping)?,
        cfa::REGISTER => register_value::<A, T>(target, walk, rule.register, mapping)?,
        cfa::PLT => {
            let pushed = if (walk.registers.pc & 15) as i64 >= rule.cfa_offset as i64 { 8 } else { 0 };
            return Ok(walk.registers.sp.wrapping_add(8).wrapping_add(pushed));
        }
        cfa::OTHER_STACK => match value_of_frame_pointer(target, walk, mapping)? {
            0 => return Err(stop(Stop::Root, mapping)),
            frame => frame,
        },
        cfa::END => return Err(stop(Stop::Root, mapping)),
        _ => return Err(word::end(Stop::UnsupportedRule as u8, mapping.object, rule.register)),
    };
    let address = base.wrapping_add(offset);
    if rule.cfa == cfa::DEREF_FP || rule.cfa == cfa::DEREF_SP {
        let Some(loaded) = target.read_u64(address) else { return Err(stop(Stop::UnreadableStack, mapping)) };
        return Ok(loaded.wrapping_add(rule.extra as i64 as u64));
    }
    Ok(address)
}

/// The frame pointer's value in this frame.
#[inline(always)]
fn value_of_frame_pointer<T: Target>(target: &mut T, walk: &Walk, mapping: &Mapping) -> Result<u64, u64> {
    if walk.state & state::FRAME_POINTER_LOST != 0 {
        return Err(stop(Stop::LostRegister, mapping));
    }
    if walk.fp_at == 0 {
        return Ok(walk.registers.fp);
    }
    target.read_u64(walk.fp_at).ok_or_else(|| stop(Stop::UnreadableStack, mapping))
}

/// The value of another register: the one that is followed, or any in an interrupted frame, whether that of the sample
/// itself or of the code that a signal interrupted.
#[inline(always)]
fn register_value<A: Architecture, T: Target>(
    target: &mut T,
    walk: &Walk,
    register: u8,
    mapping: &Mapping,
) -> Result<u64, u64> {
    let followed = A::FOLLOWED == Some(register) && walk.state & state::FOLLOWED_LOST == 0;
    if walk.state & state::EXACT == 0 && !followed {
        return Err(stop(Stop::LostRegister, mapping));
    }
    let address = if followed && walk.bx_at != 0 {
        walk.bx_at
    } else if walk.signal_frame != 0 && walk.state & state::EXACT != 0 {
        walk.signal_frame.wrapping_add(A::signal_register(register))
    } else {
        return Ok(walk.registers.all[register as usize & (abi::record::REGISTERS - 1)]);
    };
    target.read_u64(address).ok_or_else(|| stop(Stop::UnreadableStack, mapping))
}

/// Where the caller's frame pointer lies (0 = it is still in its register), and the state bit if its value is lost.
#[inline(always)]
fn frame_pointer<T: Target>(
    target: &mut T,
    walk: &Walk,
    rule: &Rule,
    cfa: u64,
    mapping: &Mapping,
) -> Result<(u64, u32), u64> {
    let base = match rule.fp {
        fp::SAME => return Ok((walk.fp_at, walk.state & state::FRAME_POINTER_LOST)),
        fp::AT_CFA => cfa,
        fp::AT_FP => value_of_frame_pointer(target, walk, mapping)?,
        fp::AT_SP => walk.registers.sp,
        _ => return Ok((0, state::FRAME_POINTER_LOST)),
    };
    Ok((base.wrapping_add(rule.fp_offset as i64 as u64), 0))
}

/// The same of the other register that is followed.
#[inline(always)]
fn followed(walk: &Walk, rule: &Rule, cfa: u64) -> (u64, u32) {
    match rule.bx_offset {
        bx::SAME => (walk.bx_at, walk.state & state::FOLLOWED_LOST),
        bx::LOST => (0, state::FOLLOWED_LOST),
        offset => (cfa.wrapping_add(offset as i64 as u64), 0),
    }
}

/// Code that says nothing of its caller: the frame record at the frame pointer, if it can be one.
#[inline(always)]
fn by_frame_pointer<T: Target>(target: &mut T, walk: &Walk, mapping: &Mapping) -> Result<Caller, u64> {
    if walk.state & state::FRAME_POINTER_LOST != 0 {
        return Err(stop(Stop::NoUnwindInfo, mapping));
    }
    let record = value_of_frame_pointer(target, walk, mapping)?;
    // a chain of frame records ends in a record at 0, or in one whose return address is 0
    let in_chain = walk.state & state::BY_FRAME_POINTER != 0;
    if record == 0 && in_chain {
        return Err(stop(Stop::Root, mapping));
    }
    if record < walk.registers.sp || record & 7 != 0 {
        return Err(stop(Stop::NoUnwindInfo, mapping));
    }
    // a record at the end of the address space would go on at its beginning
    let Some(sp) = record.checked_add(16) else { return Err(stop(Stop::NoUnwindInfo, mapping)) };
    let Some(return_address) = target.read_u64(sp - 8) else {
        return Err(stop(Stop::NoUnwindInfo, mapping));
    };
    if return_address == 0 {
        return Err(stop(if in_chain { Stop::Root } else { Stop::NoUnwindInfo }, mapping));
    }
    let pc = checked_return_address(return_address, walk, mapping, true)?;
    // what this code did to other registers is not known
    let state = state::BY_FRAME_POINTER | state::FOLLOWED_LOST;
    Ok(Caller { pc, sp, fp_at: record, bx_at: 0, state, unproven: true })
}

/// The handler's return trampoline: everything was saved at the stack pointer when the signal was delivered.
#[inline(always)]
fn by_signal_frame<A: Architecture, T: Target>(target: &mut T, walk: &mut Walk) -> Result<Caller, u64> {
    let frame = walk.registers.sp;
    let unreadable = word::end(Stop::UnreadableStack as u8, 0, 0);
    let mut saved = |offset: u64| target.read_u64(frame.wrapping_add(offset)).ok_or(unreadable);
    let (pc, sp) = (saved(A::SIGNAL_PC)?, saved(A::SIGNAL_SP)?);
    if let Some(offset) = A::SIGNAL_LR {
        walk.registers.lr = saved(offset)?;
    }
    if pc >> word::TAG_SHIFT != 0 {
        return Err(word::end(Stop::BadReturnAddress as u8, 0, 0));
    }
    walk.signal_frame = frame;
    let bx_at = match A::FOLLOWED {
        Some(register) => frame.wrapping_add(A::signal_register(register)),
        None => 0,
    };
    Ok(Caller { pc, sp, fp_at: frame.wrapping_add(A::SIGNAL_FP), bx_at, state: state::EXACT, unproven: false })
}
