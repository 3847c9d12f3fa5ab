//! All that names the code of one file.

use std::path::PathBuf;

use crate::contents::Input;
use crate::debug_file::{DebugFile, Places};
use crate::demangle::Demangler;
use crate::dwarf::DebugInfo;
use crate::layout::Layout;
use crate::native::{Function, Named};
use crate::symtab::{self, Kind};
use crate::table::{SymbolTable, TableBuilder};
use crate::{ObjectFile, Reason, mini, plt};

/// All that names the wanted code of one file.
pub(crate) struct Loaded {
    layout: Layout,
    symbols: SymbolTable,
    pub(crate) debug_info: Option<DebugInfo>,
    pub(crate) reasons: Vec<Reason>,
}

/// What a step found, or nothing and a reason.
fn noted<T: Default>(found: Result<T, Reason>, reasons: &mut Vec<Reason>) -> T {
    found.unwrap_or_else(|reason| {
        reasons.push(reason);
        T::default()
    })
}

impl Loaded {
    /// Reads all that can be found for these file offsets. What cannot be used costs its names, not the others, and
    /// leaves a reason.
    pub(crate) fn read(object: &ObjectFile, offsets: &[u64], directories: &[PathBuf]) -> Result<Loaded, Reason> {
        let input = Input::File(&object.file);
        let layout = Layout::read(&input)?;
        let addresses = offsets.iter().filter_map(|offset| layout.address_of(*offset)).collect();
        let (mut reasons, mut builder) = (Vec::new(), TableBuilder::new(addresses));
        let mut full = noted(symtab::add(&mut builder, &input, &layout, Kind::Full), &mut reasons);
        let exported = noted(symtab::add(&mut builder, &input, &layout, Kind::Dynamic), &mut reasons);
        noted(plt::add(&mut builder, &input, &layout), &mut reasons);

        let places = Places::of(object, directories);
        let mut separate = None;
        if !full || !layout.has_debug_info() {
            separate = places.debug_file(object, &layout, &mut reasons);
        }
        if let Some(DebugFile { file, layout }) = &separate {
            full |= noted(symtab::add(&mut builder, &Input::File(file), layout, Kind::Full), &mut reasons);
        }
        full |= noted(mini::add(&mut builder, &input, &layout), &mut reasons);
        let debug_info = debug_info(object, &layout, separate.as_ref(), &places, &mut reasons);
        if !full && debug_info.is_none() {
            reasons.push(if exported { Reason::OnlyExported } else { Reason::Stripped });
        }
        Ok(Loaded { layout, symbols: builder.build(), debug_info, reasons })
    }

    /// The functions at a file offset.
    pub(crate) fn name(&self, offset: u64, demangler: &Demangler) -> Result<Named, Reason> {
        let Some(address) = self.layout.address_of(offset) else { return Ok(Named::default()) };
        let mut functions: Vec<Function> = Vec::new();
        if let Some(debug_info) = &self.debug_info {
            let places = debug_info.places(address).map_err(|error| Reason::BadDebugInfo(error.to_string()))?;
            let last = places.len().saturating_sub(1);
            functions = places
                .into_iter()
                .enumerate()
                .filter_map(|(index, place)| {
                    let inlined = index != last;
                    // the symbol is what nm, gdb and perf call the function: `foo.cold`, `foo.constprop.0`
                    let symbol = if inlined { None } else { self.symbols.name(address) };
                    let name = demangler.name(symbol.or(place.name.as_deref())?);
                    Some(Function { name, file: place.file, line: place.line, start_line: place.start_line, inlined })
                })
                .collect();
        }
        if functions.last().is_none_or(|last| last.inlined) {
            functions.extend(self.symbol(offset, demangler));
        }
        Ok(whole(functions))
    }

    /// What the symbols alone say of a file offset.
    pub(crate) fn symbol(&self, offset: u64, demangler: &Demangler) -> Option<Function> {
        let name = demangler.name(self.symbols.name(self.layout.address_of(offset)?)?);
        Some(Function { name, file: None, line: 0, start_line: 0, inlined: false })
    }
}

/// Inlined functions say nothing if it is not known what they were inlined into: they would seem to be part of
/// whatever function called that.
fn whole(functions: Vec<Function>) -> Named {
    if functions.last().is_some_and(|last| last.inlined) { Named::default() } else { Named { functions } }
}

/// Lines and inlined functions, from the file itself or its debug file.
fn debug_info(
    object: &ObjectFile,
    layout: &Layout,
    separate: Option<&DebugFile>,
    places: &Places<'_>,
    reasons: &mut Vec<Reason>,
) -> Option<DebugInfo> {
    let own = layout.has_debug_info().then_some((&object.file, layout));
    let (file, layout) = own.or_else(|| separate.map(|found| (&found.file, &found.layout)))?;
    if !layout.has_debug_info() {
        return None;
    }
    let common = places.common_file(&Input::File(file), layout, reasons);
    DebugInfo::read(file, layout, common.as_ref()).map_err(|reason| reasons.push(reason)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Found by the fuzz target `symtab`.
    #[test]
    fn functions_that_were_inlined_into_what_has_no_name_are_not_shown() {
        let function = |inlined| Function { name: "f".to_owned(), file: None, line: 0, start_line: 0, inlined };
        assert_eq!(whole(vec![function(true), function(true)]), Named::default());
        assert_eq!(whole(vec![function(true), function(false)]).functions.len(), 2);
        assert_eq!(whole(Vec::new()), Named::default());
    }
}
