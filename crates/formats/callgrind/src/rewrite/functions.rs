//! Determines which function the lines belong to and which function is called, and whether callgrind knew it.

use std::io::Write;
use std::rc::Rc;

use super::cursor::{ResolvedName, Target};
use super::{CopiedCode, Mode, Rewriter};
use crate::code_map::{CodeMap, Owner};
use crate::context::UNKNOWN;
use crate::error::Cause;
use crate::line::{Field, Kind, Line, NameRef};
use crate::write::push_name;

impl<M: CodeMap, W: Write> Rewriter<'_, M, W> {
    /// Resolves a name whose line is not copied, or not yet.
    fn given(&mut self, kind: Kind, name: NameRef<'_>) -> Result<ResolvedName, Cause> {
        let resolved = self.names.resolve(kind, name)?;
        if kind == Kind::Object
            && let Some(id) = name.id
            && self.naming.map.is_announced(&resolved)
        {
            self.names.mark_announced(id);
        }
        Ok(ResolvedName { id: name.id, name: resolved })
    }

    /// Handles `ob` and `fl`.
    pub(super) fn place(&mut self, field: Field, name: NameRef<'_>) -> Result<(), Cause> {
        let given = self.given(field.kind(), name)?;
        if field == Field::Ob {
            self.cursor.is_announced = self.naming.map.is_announced(&given.name);
            self.cursor.object = given;
            self.cursor.object_is_due = true;
        } else {
            self.cursor.line_file = Rc::clone(&given.name);
            self.cursor.file = given;
            self.cursor.file_is_due = true;
        }
        Ok(())
    }

    /// Handles `fi` and `fe`, and the names of a jump's target.
    pub(super) fn other_name(
        &mut self,
        field: Field,
        name: NameRef<'_>,
        raw: &[u8],
    ) -> Result<(), Cause> {
        if self.is_announced() && field.kind() == Kind::File {
            let given = self.given(Kind::File, name)?;
            self.announced_file(field, given);
            return Ok(());
        }
        self.begin_item();
        let resolved = if self.is_copying() {
            self.write_location();
            self.copy_name(field, name, raw)?
        } else {
            self.names.resolve(field.kind(), name)?
        };
        if matches!(field, Field::Fi | Field::Fe) {
            self.cursor.line_file = resolved;
        }
        Ok(())
    }

    /// Handles `fn`.
    pub(super) fn function(&mut self, name: NameRef<'_>, raw: &[u8]) -> Result<(), Cause> {
        self.cursor.in_function = true;
        self.target = Target::default();
        if self.mode == Mode::Copy(CopiedCode::Named) || self.is_announced() {
            self.cursor.mark_due();
        }
        self.announced = None;
        let resolved = self.names.resolve(Kind::Function, name)?;
        self.cursor.line_file = Rc::clone(&self.cursor.file.name);
        let (object, file) = (&self.cursor.object.name, &self.cursor.file.name);
        let context = self.contexts.number(&mut self.naming, &resolved, object, file);
        self.mode = Mode::Copy(CopiedCode::Known);
        if let Some(index) = context {
            if self.columns.has_instr() {
                self.mode = Mode::Collect(index);
                self.is_in_step = false;
                return Ok(());
            }
            // Without instruction addresses, only the name changes.
            self.mode = Mode::Copy(CopiedCode::Unknown);
            let owner = self.contexts.get(index).and_then(|context| context.owner.clone());
            if let Some(owner) = owner {
                self.mode = Mode::Copy(CopiedCode::Named);
                self.begin_named(index, &owner);
                return Ok(());
            }
        }
        self.write_location();
        let resolved = self.copy_name(Field::Fn, name, raw)?;
        if context.is_none() {
            self.begin_announced(&resolved);
        }
        Ok(())
    }

    fn begin_named(&mut self, index: usize, owner: &Owner) {
        self.functions.insert(owner.function);
        self.summary.contexts = self.summary.contexts.saturating_add(1);
        self.push_named(index, owner, ["ob", "fl", "fn"]);
        // They stay omitted until the next function, which writes its own.
        self.cursor.object_is_due = false;
        self.cursor.file_is_due = false;
    }

    /// Writes object, file and name of a context's own function.
    fn push_named(&mut self, index: usize, owner: &Owner, keys: [&str; 3]) {
        let Some(context) = self.contexts.get(index) else { return };
        let function = self.naming.map.function(owner.function);
        let (level, callers) = (context.context.level, &context.context.callers);
        let name = self.naming.decorated(&function.name, level, callers);
        let texts = [&*function.object, &*function.file, &*name];
        keys.into_iter().zip(texts).for_each(|(key, text)| push_name(&mut self.out, key, text));
    }

    /// Handles `cob` and `cfi`, which are written once the callee is known.
    pub(super) fn target(&mut self, line: Line<'_>) -> Result<(), Cause> {
        let Line::Name { field, name } = line else { return Ok(()) };
        let given = Some(self.given(field.kind(), name)?);
        if field == Field::Cob {
            self.target.object = given;
        } else {
            self.target.file = given;
            self.target.file_field = Some(field);
        }
        Ok(())
    }

    /// Handles `cfn`.
    pub(super) fn callee(&mut self, name: NameRef<'_>, raw: &[u8]) -> Result<(), Cause> {
        let resolved = self.names.resolve(Kind::Function, name)?;
        let object = self.target.object.as_ref().unwrap_or(&self.cursor.object);
        if *object.name != *UNKNOWN && self.is_copying() {
            return self.copy_callee(name, raw);
        }
        let file = self.target.file.as_ref().map_or(&self.cursor.line_file, |given| &given.name);
        let context = self.contexts.number(&mut self.naming, &resolved, &object.name, file);
        self.target.context = context;
        self.target.function = Some(resolved);
        if !self.is_copying() {
            return Ok(());
        }
        self.begin_item();
        self.write_location();
        let owner = context.and_then(|index| {
            let owner = self.contexts.get(index)?.owner.clone()?;
            Some((index, owner))
        });
        match owner {
            Some((index, owner)) => self.push_named(index, &owner, ["cob", "cfi", "cfn"]),
            None => self.copy_callee(name, raw)?,
        }
        Ok(())
    }

    /// Writes a call's target that stays unchanged.
    fn copy_callee(&mut self, name: NameRef<'_>, raw: &[u8]) -> Result<(), Cause> {
        self.write_location();
        self.begin_item();
        if self.mode == Mode::Copy(CopiedCode::Named) || self.is_announced() {
            // The output is in another object and file than the input. Without explicit names the target would be in
            // the input's own.
            let file = || ResolvedName { id: None, name: Rc::clone(&self.cursor.line_file) };
            self.target.file.get_or_insert_with(file);
            self.target.object.get_or_insert_with(|| self.cursor.object.clone());
        }
        if let Some(given) = self.target.object.take() {
            self.push_resolved(Field::Cob, &given);
        }
        if let Some(given) = self.target.file.take() {
            self.push_resolved(self.target.file_field.unwrap_or(Field::Cfi), &given);
        }
        let name = self.copy_name(Field::Cfn, name, raw)?;
        self.target.function = Some(name);
        Ok(())
    }
}
