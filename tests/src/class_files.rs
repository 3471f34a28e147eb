//! The lines and the calls of methods, as `javap` finds them in class files.

use std::collections::{BTreeMap, BTreeSet};

use crate::java::Jdk;
use crate::tool::output;

/// Classes that `javap` has read.
#[derive(Debug, Default)]
pub struct ClassFiles(BTreeMap<String, ClassFile>);

/// A class.
#[derive(Debug, Default)]
pub struct ClassFile {
    /// The name of its source file.
    pub source: String,
    /// By name; those with other arguments follow one another.
    methods: BTreeMap<String, Vec<Method>>,
}

/// A method.
#[derive(Debug, Default)]
struct Method {
    /// Offset of the bytecode → line.
    lines: BTreeMap<u32, u32>,
    /// Offset of a call → name of the method, and whether it is an `invokedynamic`.
    calls: Vec<(u32, String, bool)>,
}

impl ClassFiles {
    /// Reads these classes of the JDK. Those that the JVM has generated are in no file, and are left out.
    pub fn read<'c>(jdk: &Jdk, classes: impl IntoIterator<Item = &'c str>) -> Self {
        // It fails if one class of many is not there.
        let mut javap = jdk.tool("javap");
        let printed = output(javap.args(["-l", "-p", "-c"]).args(classes)).stdout;
        Self::parse(&String::from_utf8_lossy(&printed))
    }

    fn parse(printed: &str) -> Self {
        let mut classes = BTreeMap::new();
        for part in printed.split("Compiled from \"").skip(1) {
            let (source, part) = part.split_once('"').expect("a file name");
            let mut lines = part.lines().filter(|line| !line.is_empty());
            let name = class_name(lines.next().expect("a declaration"));
            let mut class = ClassFile { source: source.to_owned(), ..ClassFile::default() };
            let mut current: Option<&mut Method> = None;
            for line in lines {
                let depth = line.len() - line.trim_start().len();
                if depth == 2 {
                    current = method_name(line.trim(), &name).map(|method| {
                        let all = class.methods.entry(method).or_default();
                        all.push(Method::default());
                        all.last_mut().expect("it was added")
                    });
                } else if let Some(method) = &mut current {
                    method.add(line.trim());
                }
            }
            classes.insert(name, class);
        }
        Self(classes)
    }

    /// A class, if it is in a file.
    pub fn class(&self, name: &str) -> Option<&ClassFile> {
        self.0.get(name)
    }
}

/// The name in `public final class java.util.ArrayList<E> extends …`.
fn class_name(declaration: &str) -> String {
    let mut words = declaration.split_whitespace();
    words.find(|word| ["class", "interface"].contains(word)).expect("a class");
    let name = words.next().expect("a name");
    name.split('<').next().unwrap_or(name).to_owned()
}

/// The name in a declaration; fields have none.
fn method_name(declaration: &str, class: &str) -> Option<String> {
    if declaration == "static {};" {
        return Some("<clinit>".to_owned());
    }
    let (before, _) = declaration.split_once('(')?;
    let name = before.rsplit(' ').next()?;
    Some(if name == class { "<init>".to_owned() } else { name.to_owned() })
}

impl Method {
    /// Adds what a line of `javap` says.
    fn add(&mut self, line: &str) {
        if let Some((line, offset)) = line.strip_prefix("line ").and_then(|it| it.split_once(": "))
        {
            let (line, offset) = (line.parse().expect("a line"), offset.parse().expect("a number"));
            self.lines.insert(offset, line);
        } else if let Some((offset, instruction)) = line.split_once(": ")
            && instruction.starts_with("invoke")
            && let Ok(offset) = offset.parse()
            && let Some((_, called)) = instruction.split_once("// ")
        {
            let (kind, called) = called.split_once(' ').expect("a kind and a name");
            let is_dynamic = kind == "InvokeDynamic";
            let mut parts = called.split(':');
            let called = if is_dynamic { parts.nth(1) } else { parts.next() };
            let name = called.and_then(|called| called.rsplit('.').next()).expect("a name");
            self.calls.push((offset, name.trim_matches('"').to_owned(), is_dynamic));
        }
    }

    fn line(&self, offset: u32) -> Option<u32> {
        self.lines.range(..=offset).next_back().map(|(_, line)| *line)
    }
}

impl ClassFile {
    /// Whether it has this method.
    pub fn has_method(&self, method: &str) -> bool {
        self.methods.contains_key(method)
    }

    fn methods(&self, method: &str) -> impl Iterator<Item = &Method> {
        self.methods.get(method).into_iter().flatten()
    }

    /// The lines of a method; none if it is native or abstract.
    pub fn lines(&self, method: &str) -> BTreeSet<u32> {
        self.methods(method).flat_map(|method| method.lines.values().copied()).collect()
    }

    /// Whether a method calls another one of this name in a line, or runs an `invokedynamic` there.
    pub fn calls(&self, method: &str, line: u32, called: &str) -> bool {
        self.methods(method).any(|method| {
            let mut calls = method.calls.iter();
            calls.any(|(offset, name, is_dynamic)| {
                (name == called || *is_dynamic) && method.line(*offset) == Some(line)
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PRINTED: &str = "Compiled from \"A.java\"
public class a.A$B<T> extends java.lang.Object {
  private final int field;

  a.A$B(a.A, int);
    Code:
       0: aload_0
       1: invokespecial #7                  // Method java/lang/Object.\"<init>\":()V
       4: return
    LineNumberTable:
      line 3: 0
      line 4: 4

  public <U> int f(U);
    Code:
       0: invokeinterface #11,  1           // InterfaceMethod java/util/List.size:()I
       5: invokedynamic #9,  0              // InvokeDynamic #0:run:()Ljava/lang/Runnable;
      10: invokevirtual #5                  // Method g:(I)V
    LineNumberTable:
      line 7: 0
      line 6: 10

  static {};
    Code:
       0: return
    LineNumberTable:
      line 1: 0
}
";

    #[test]
    fn lines_and_calls_are_found() {
        let files = ClassFiles::parse(PRINTED);
        let class = files.class("a.A$B").expect("the class");
        assert_eq!(class.source, "A.java");
        assert_eq!(class.lines("<init>"), [3, 4].into());
        assert_eq!(class.lines("f"), [6, 7].into());
        assert!(class.has_method("<clinit>") && !class.has_method("field"));
        assert!(class.calls("<init>", 3, "<init>") && !class.calls("<init>", 4, "<init>"));
        assert!(class.calls("f", 7, "size") && class.calls("f", 7, "lambda"));
        assert!(class.calls("f", 6, "g") && !class.calls("f", 6, "size"));
    }
}
