//! The modules of a crate, and in which file the items are that each file names.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};
use syn::ext::IdentExt;
use syn::visit::{self, Visit};
use syn::{
    Attribute, Expr, ExprLit, Ident, ImplItemFn, Item, ItemMod, ItemUse, Lit, Meta, UseTree,
    Visibility,
};

/// A module: a file, or a part of one.
#[derive(Default)]
struct Module {
    file: usize,
    parent: Option<usize>,
    /// Several may have one name, each for another system.
    children: Vec<(String, usize)>,
    /// The names that it defines.
    items: BTreeSet<String>,
    /// The names that it imports, and the paths they stand for.
    imports: Vec<(String, Vec<String>)>,
    /// The paths that it imports everything of.
    globs: Vec<Vec<String>>,
    /// The paths that its code names. A re-export is none: who imports it depends on the file with the item.
    paths: BTreeSet<Vec<String>>,
}

/// What a path leads to.
#[derive(Clone, Copy, PartialEq)]
enum Target {
    Module(usize),
    /// An item in this file.
    Item(usize),
}

/// A crate's modules, without those for tests.
pub struct Crate {
    modules: Vec<Module>,
    files: Vec<PathBuf>,
}

impl Crate {
    /// Reads all files of a crate. `root` is its `lib.rs` or `main.rs`.
    pub fn read(root: &Path) -> Self {
        let mut read = Self { modules: vec![Module::default()], files: Vec::new() };
        let folder = root.parent().expect("a folder");
        read.read_file(root, folder, 0);
        read
    }

    /// Reads a module's file; the files of its children are in `folder`.
    fn read_file(&mut self, file: &Path, folder: &Path, module: usize) {
        let text = fs::read_to_string(file).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{file:?}: {error}"));
        self.modules[module].file = self.files.len();
        self.files.push(file.to_owned());
        self.read_items(&parsed.items, folder, module);
    }

    fn read_items(&mut self, items: &[Item], folder: &Path, module: usize) {
        for item in items {
            if attributes(item).iter().any(is_for_tests) {
                continue;
            }
            if let Item::Mod(child) = item {
                self.read_module(child, folder, module);
                continue;
            }
            if let Some(name) = name(item) {
                self.modules[module].items.insert(name.unraw().to_string());
            }
            Paths { module: &mut self.modules[module] }.visit_item(item);
        }
    }

    fn read_module(&mut self, item: &ItemMod, folder: &Path, parent: usize) {
        let name = item.ident.unraw().to_string();
        let module = self.modules.len();
        let file = self.modules[parent].file;
        self.modules.push(Module { file, parent: Some(parent), ..Module::default() });
        self.modules[parent].children.push((name.clone(), module));
        let below = folder.join(&name);
        if let Some((_, items)) = &item.content {
            return self.read_items(items, &below, module);
        }
        // A path in an attribute begins at the folder of the file that has it.
        if let Some(path) = item.attrs.iter().find_map(path_attribute) {
            let file = self.files[file].with_file_name(path);
            return self.read_file(&file, &below, module);
        }
        let flat = folder.join(format!("{name}.rs"));
        let file = if flat.exists() { flat } else { below.join("mod.rs") };
        self.read_file(&file, &below, module);
    }

    pub fn files(&self) -> &[PathBuf] {
        &self.files
    }

    /// For each file the others in which the items are that it names, however many re-exports lie between.
    pub fn imports(&self) -> Vec<BTreeSet<usize>> {
        let mut imports = vec![BTreeSet::new(); self.files.len()];
        for (index, module) in self.modules.iter().enumerate() {
            for path in &module.paths {
                for target in self.resolve(index, path, &mut Seen::new()) {
                    if let Target::Item(file) = target
                        && file != module.file
                    {
                        imports[module.file].insert(file);
                    }
                }
            }
        }
        imports
    }

    /// What a path in a module leads to: nothing, if it is of another crate. `seen` are the names that are being looked up.
    fn resolve(&self, module: usize, path: &[String], seen: &mut Seen) -> Vec<Target> {
        let Some((first, rest)) = path.split_first() else { return Vec::new() };
        let mut targets = match first.as_str() {
            "crate" => vec![Target::Module(0)],
            "self" => vec![Target::Module(module)],
            "super" => self.modules[module].parent.map(Target::Module).into_iter().collect(),
            name => self.look_up(module, name, seen),
        };
        for name in rest {
            // A macro or a function may have the name of a module, but nothing is in it.
            if targets.iter().any(|target| matches!(target, Target::Module(_))) {
                targets.retain(|target| matches!(target, Target::Module(_)));
            }
            targets = targets
                .into_iter()
                .flat_map(|target| match target {
                    Target::Module(module) if name == "super" => {
                        self.modules[module].parent.map(Target::Module).into_iter().collect()
                    }
                    Target::Module(module) => self.look_up(module, name, seen),
                    // A variant or an associated item is where its type is.
                    Target::Item(_) => vec![target],
                })
                .collect();
        }
        targets
    }

    fn look_up(&self, module: usize, name: &str, seen: &mut Seen) -> Vec<Target> {
        if !seen.insert((module, name.to_owned())) {
            return Vec::new();
        }
        let Module { file, children, items, imports, globs, .. } = &self.modules[module];
        let children = children.iter().filter(|(child, _)| child == name);
        let mut targets: Vec<Target> = children.map(|(_, child)| Target::Module(*child)).collect();
        if items.contains(name) {
            targets.push(Target::Item(*file));
        }
        for (_, path) in imports.iter().filter(|(import, _)| import == name) {
            targets.extend(self.resolve(module, path, seen));
        }
        if targets.is_empty() {
            for path in globs {
                for target in self.resolve(module, path, seen) {
                    if let Target::Module(module) = target {
                        targets.extend(self.look_up(module, name, seen));
                    }
                }
            }
        }
        seen.remove(&(module, name.to_owned()));
        targets
    }
}

type Seen = BTreeSet<(usize, String)>;

/// Collects what an item names.
struct Paths<'a> {
    module: &'a mut Module,
}

impl Paths<'_> {
    fn add_use(&mut self, tree: &UseTree, prefix: &[String], is_exported: bool) {
        let longer = |name: &Ident| {
            let mut path = prefix.to_vec();
            if name != "self" || path.is_empty() {
                path.push(name.unraw().to_string());
            }
            path
        };
        let (path, name) = match tree {
            UseTree::Path(path) => {
                return self.add_use(&path.tree, &longer(&path.ident), is_exported);
            }
            UseTree::Group(group) => {
                for tree in &group.items {
                    self.add_use(tree, prefix, is_exported);
                }
                return;
            }
            UseTree::Glob(_) => return self.module.globs.push(prefix.to_vec()),
            UseTree::Name(name) => (longer(&name.ident), None),
            UseTree::Rename(rename) => (longer(&rename.ident), Some(&rename.rename)),
        };
        let name = match name {
            Some(name) => name.unraw().to_string(),
            None => path.last().cloned().unwrap_or_default(),
        };
        // `use rows;` of a child brings no name that is not there.
        if path.len() > 1 || path[0] != name {
            self.module.imports.push((name, path.clone()));
        }
        if !is_exported {
            self.module.paths.insert(path);
        }
    }

    /// The paths among a macro's arguments.
    fn add_tokens(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Ident(name) => {
                    if colons != 2 {
                        self.add(std::mem::take(&mut path));
                    }
                    path.push(name.unraw().to_string());
                    colons = 0;
                }
                TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                    colons += 1;
                }
                other => {
                    self.add(std::mem::take(&mut path));
                    colons = 0;
                    if let TokenTree::Group(group) = other {
                        self.add_tokens(group.stream());
                    }
                }
            }
        }
        self.add(path);
    }

    fn add(&mut self, path: Vec<String>) {
        if !path.is_empty() {
            self.module.paths.insert(path);
        }
    }
}

impl<'ast> Visit<'ast> for Paths<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        let is_exported = !matches!(item.vis, Visibility::Inherited);
        self.add_use(&item.tree, &[], is_exported);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.leading_colon.is_none() {
            self.add(path.segments.iter().map(|part| part.ident.unraw().to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    fn visit_impl_item_fn(&mut self, item: &'ast ImplItemFn) {
        if !item.attrs.iter().any(is_for_tests) {
            visit::visit_impl_item_fn(self, item);
        }
    }

    fn visit_visibility(&mut self, _: &'ast Visibility) {}

    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_macro(&mut self, invoked: &'ast syn::Macro) {
        self.visit_path(&invoked.path);
        self.add_tokens(invoked.tokens.clone());
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name(item: &Item) -> Option<&Ident> {
    Some(match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    })
}

/// Whether this is `#[cfg(test)]`, or asks for more besides.
fn is_for_tests(attribute: &Attribute) -> bool {
    let Meta::List(list) = &attribute.meta else { return false };
    if !list.path.is_ident("cfg") {
        return false;
    }
    let condition = list.tokens.to_string();
    condition == "test" || (condition.starts_with("all") && condition.contains("test"))
}

/// The file that `#[path = "…"]` names.
fn path_attribute(attribute: &Attribute) -> Option<String> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    if !pair.path.is_ident("path") {
        return None;
    }
    let Expr::Lit(ExprLit { lit: Lit::Str(path), .. }) = &pair.value else { return None };
    Some(path.value())
}
