//! The colours of sources are those that the languages' own readers give.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use end_to_end::tool::{cache, run, tool};
use serde_json::Value;
use tempfile::TempDir;

/// A character of a file, by line and column, and its colour.
type Colored = BTreeSet<(usize, usize, String)>;

fn syntax() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/syntax")
}

/// What a program prints for files, a line of JSON each.
fn printed(program: &str, words: &[&Path], files: &[PathBuf]) -> Vec<Colored> {
    let printed = run(tool(program).args(words).args(files)).stdout;
    let lines: Vec<Colored> = printed.lines().map(colored).collect();
    assert_eq!(lines.len(), files.len(), "{program}");
    lines
}

fn colored(line: &str) -> Colored {
    let tokens: Vec<Value> = serde_json::from_str(line).expect("JSON");
    let number = |value: &Value| value.as_u64().expect("a number") as usize;
    let mut colored = Colored::new();
    for token in &tokens {
        for column in number(&token[1])..number(&token[2]) {
            let kind = token[3].as_str().expect("a kind").to_owned();
            colored.insert((number(&token[0]), column, kind));
        }
    }
    colored
}

/// The page's own reader as a program for node.
fn ours(folder: &TempDir) -> PathBuf {
    compiled(folder, "tokens")
}

fn compiled(folder: &TempDir, name: &str) -> PathBuf {
    let program = folder.path().join(format!("{name}.js"));
    let mut build = tool(cache().join("linux-x64-0.28.2/bin/esbuild"));
    build.arg(syntax().join(format!("{name}.ts")));
    build.args(["--bundle", "--format=cjs", "--platform=node", "--log-level=warning"]);
    run(build.arg(format!("--outfile={}", program.display())));
    program
}

/// Keywords are not compared: what one is may depend on the grammar.
fn assert_alike(program: &str, words: &[&Path], files: &[PathBuf], least: usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let mut shown = printed("node", &[&ours(&folder)], files);
    for ((file, shown), expected) in
        files.iter().zip(&mut shown).zip(printed(program, words, files))
    {
        shown.retain(|(.., kind)| kind != "keyword");
        let text = fs::read_to_string(file).expect("a file");
        let lines: Vec<&str> = text.split('\n').collect();
        let at = |it: &(usize, usize, String)| format!("{it:?}: {:?}", lines[it.0]);
        let differences: Vec<String> =
            shown.symmetric_difference(&expected).take(5).map(at).collect();
        assert!(differences.is_empty(), "{}: {differences:#?}", file.display());
        assert!(expected.len() > least, "{}: {}", file.display(), expected.len());
    }
}

#[test]
fn python_is_coloured_as_python_reads_it() {
    let program = "import os; print(os.path.dirname(os.__file__))";
    let library = run(tool("python3").args(["-c", program])).stdout;
    let library = Path::new(library.trim_end());
    let files = ["datetime.py", "pstats.py", "pydoc.py", "textwrap.py", "typing.py"];
    assert_alike(
        "python3",
        &[&syntax().join("oracle.py")],
        &files.map(|it| library.join(it)),
        1_000,
    );
}

/// Sources, and what of them has colours: keywords in `⟦ ⟧`, comments in `‹ ›`, strings in `« »`, numbers in `⟨ ⟩`.
const SAMPLES: &[(&str, &str)] = &[
    (
        "a.rs",
        "⟦fn⟧ longest<'a>(x: &'a ⟦str⟧) -> ⟦char⟧ { «'\\''»; «'é'»; b«'x'»; «r#\"a \"quoted\" \\\"#»; ‹/* a /* b */ c */› ⟨1_000u32⟩..⟨2.5e-3⟩ }\n⟦let⟧ s = «\"two»\n«lines // \\\" \"»; ‹// end›",
    ),
    (
        "a.cc",
        "⟦#include⟧ <map>\n⟦auto⟧ s = «R\"x(a )\" \\»\n«b)x\"»; ⟦int⟧ n = ⟨1'000'000⟩; ⟦char⟧ c = «'\\''»; ‹/* two›\n‹lines */› ⟦return⟧ ⟨0x1Fe⟩+⟨1⟩;",
    ),
    ("a.h", "⟦#  define⟧ X «\"a\\»\n«b\"» ‹// c›"),
    ("a.c", "⟦static⟧ ⟦const⟧ ⟦double⟧ x = ⟨1.5e+3⟩; ‹/* \"no string */›"),
    (
        "A.java",
        "⟦public⟧ ⟦record⟧ P(⟦int⟧ x) { ⟦var⟧ record = «\"\"\"»\n«  a \"quoted\" // no comment»\n«  \"\"\"»; P.class; }",
    ),
    (
        "a.cs",
        "⟦#region⟧ A\n⟦var⟧ a = «@\"C:\\ \"\"x\"\" »\n«y\"»; ⟦var⟧ b = «\"\"\"\"a \"\"\" b\"\"\"\"»; ‹// c›",
    ),
    ("a.go", "⟦func⟧ f() ⟦string⟧ { ⟦return⟧ «`raw \\»\n«\"`» + «\"\\\"\"» + ⟦string⟧(«'\\''») }"),
    ("a.kt", "⟦val⟧ data = «\"\"\"a \\ \" »\n«\"\"\"»; ⟦data⟧ ⟦class⟧ A ‹/* a /* b */ */›"),
    ("a.scala", "⟦def⟧ f = «'x'» -> 'symbol ‹// c›"),
    ("a.lua", "⟦local⟧ s = «[==[ a ]] »\n«]==]» ‹--[[ b›\n‹]]› ⟦return⟧ ⟨1⟩ ‹-- c›"),
    ("a.rb", "⟦def⟧ f = «\"a #{»⟦if⟧ x.nothing«} b\"» ‹# c›"),
    ("a.ex", "⟦defmodule⟧ A ⟦do⟧ ‹# c›\n  «\"\"\"»\n«  a \"b\"»\n«  \"\"\"»"),
    ("a.swift", "⟦let⟧ a = «\"\"\"»\n« b \" c»\n«\"\"\"» ‹/* /* */ */›"),
    ("a.raku", "⟦my⟧ $x = «\"a # b\"»; ‹# c›"),
    ("demo.scribe", "⟦fn⟧ fib(n) { ⟦return⟧ n - ⟨1⟩; } ‹// Recursion›"),
    (
        "a.ts",
        "⟦type⟧ A = ⟦typeof⟧ x; set.add(type / ⟨2⟩ / ⟨3⟩); x = «`a ${»y ? «`b${»{ a: ⟨1⟩ }«}`» : ⟨2⟩«} c»\n«d`»; z = «/[/\"]\\/x/g»;",
    ),
    ("unknown.xyz", "fn \"a\" // b"),
];

/// The text of a sample, and its colours.
fn sample(marked: &str) -> (String, Colored) {
    let mut colored = Colored::new();
    let (mut text, mut kind) = (String::new(), "");
    let (mut line, mut column) = (0, 0);
    for character in marked.chars() {
        kind = match character {
            '⟦' => "keyword",
            '‹' => "comment",
            '«' => "string",
            '⟨' => "number",
            '⟧' | '›' | '»' | '⟩' => "",
            _ => {
                text.push(character);
                if !kind.is_empty() {
                    colored.insert((line, column, kind.to_owned()));
                }
                column += 1;
                if character == '\n' {
                    (line, column) = (line + 1, 0);
                }
                continue;
            }
        };
    }
    (text, colored)
}

#[test]
fn other_languages_have_their_own_strings_and_comments() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut files = Vec::new();
    for (name, marked) in SAMPLES {
        let file = folder.path().join(name);
        fs::write(&file, sample(marked).0).expect("written");
        files.push(file);
    }
    let program = ours(&folder);
    for ((name, marked), shown) in SAMPLES.iter().zip(printed("node", &[&program], &files)) {
        let expected = sample(marked).1;
        let differences: Vec<_> = shown.symmetric_difference(&expected).collect();
        assert!(differences.is_empty(), "{name}: {differences:?}");
    }
}

#[test]
fn any_text_is_read_in_order_and_to_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let count = run(tool("node").arg(compiled(&folder, "random"))).stdout;
    assert!(count.trim().parse::<u64>().expect("a number") > 100_000, "{count}");
}

#[test]
fn php_and_erlang_are_coloured_as_they_read_themselves() {
    assert_alike("php", &[&syntax().join("oracle.php")], &[syntax().join("sample.php")], 200);
    assert_alike("escript", &[&syntax().join("oracle.erl")], &[syntax().join("sample.erl")], 100);
}

#[test]
fn scripts_are_coloured_as_typescript_reads_them() {
    let typescript = cache().join("typescript-5.9.3/lib");
    let files = [
        typescript.join("lib.dom.d.ts"),
        typescript.join("_typingsInstaller.js"),
        cache().join("marked-15.0.12/lib/marked.cjs"),
    ];
    let words = [syntax().join("oracle.js"), typescript.join("typescript.js")];
    assert_alike("node", &words.each_ref().map(PathBuf::as_path), &files, 1_000);
}
