import type { Language, Region } from "./language.ts";

const words = (...lists: string[]): ReadonlySet<string> => new Set(lists.join(" ").split(" "));

const line = (open: string): Region => ({ kind: "comment", open, close: "" });
const block = (open: string, close: string, nests = false): Region => ({ kind: "comment", open, close, lines: true, nests });
const quoted = (mark: string, more: Partial<Region> = {}): Region => ({ kind: "string", open: mark, close: mark, escapes: true, ...more });
const between = (first: string, open: RegExp, close: string, more: Partial<Region> = {}): Region => ({ kind: "string", first, open, close, lines: true, ...more });

const SLASHES = [line("//"), block("/*", "*/")];
const NESTED = [line("//"), block("/*", "*/", true)];
const QUOTES = [quoted('"'), quoted("'")];
const TRIPLE = quoted('"""', { lines: true });

const CONTROL = "if else for while do switch case default break continue return";
const C_TYPES = "void char short int long float double signed unsigned bool";
const JVM = "class interface enum extends implements import package new this super try catch finally throw throws instanceof static final abstract public protected private native synchronized transient volatile true false null";

const javascript: Language = {
  words: words(
    CONTROL,
    "async await catch class const debugger delete export extends false finally function import in instanceof let new null of static super this throw true try typeof undefined var void with yield",
    "enum implements interface keyof private protected public readonly",
  ),
  soft: words("abstract as asserts declare from get is namespace satisfies set type"),
  regions: [...SLASHES, ...QUOTES, quoted("`", { lines: true, inserts: "${" })],
  slashes: true,
};

const c: Language = {
  words: words(CONTROL, C_TYPES, "auto const enum extern goto inline register restrict sizeof static struct typedef union volatile NULL true false _Bool _Atomic _Static_assert"),
  regions: [...SLASHES, ...QUOTES],
  directives: true,
};

const cpp: Language = {
  words: words(
    [...c.words].join(" "),
    "alignas alignof and catch class concept consteval constexpr constinit const_cast co_await co_return co_yield decltype delete dynamic_cast explicit export final friend mutable namespace new noexcept not nullptr operator or override private protected public reinterpret_cast requires static_assert static_cast template this thread_local throw try typename using virtual wchar_t char8_t char16_t char32_t",
  ),
  regions: [between("Ru8LU", /(?:u8|[uUL])?R"([^\s()\\]{0,16})\(/y, ')$1"'), ...SLASHES, ...QUOTES],
  directives: true,
  apostrophes: true,
};

const rust: Language = {
  words: words(
    "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while yield",
    "bool char str u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize f32 f64",
  ),
  soft: words("union"),
  regions: [
    ...NESTED,
    between("rbc", /[bc]?r(#{0,255})"/y, '"$1'),
    quoted('"', { lines: true }),
    // What is not a character is a lifetime.
    between("'", /'(?=\\.|[^\\'](?:[\udc00-\udfff])?')/y, "'", { lines: false, escapes: true }),
  ],
};

const java: Language = {
  words: words(CONTROL, JVM, "assert boolean byte char const double float goto int long short strictfp var void"),
  soft: words("module permits record sealed yield"),
  regions: [...SLASHES, TRIPLE, ...QUOTES],
};

const kotlin: Language = {
  words: words(CONTROL, JVM, "as companion fun in is lateinit object override suspend typealias val var when"),
  soft: words("by constructor data init inner internal open operator out sealed where"),
  regions: [...NESTED, { ...TRIPLE, escapes: false }, ...QUOTES],
};

const scala: Language = {
  words: words(CONTROL, JVM, "def export given implicit lazy match object override sealed then trait type val var with yield"),
  soft: words("derives end inline opaque open transparent using"),
  regions: [...NESTED, { ...TRIPLE, escapes: false }, quoted('"'), between("'", /'(?=\\.|[^\\']')/y, "'", { lines: false, escapes: true })],
};

const csharp: Language = {
  words: words(
    CONTROL,
    "abstract as async await base bool byte catch char checked class const decimal delegate double enum event explicit extern false finally fixed float foreach goto implicit in init int interface internal is lock long nameof namespace new null object operator out override params private protected public readonly ref sbyte sealed short sizeof stackalloc static string struct this throw true try typeof uint ulong unchecked unsafe ushort using var virtual void volatile",
  ),
  soft: words("dynamic get init partial record required set when where yield"),
  regions: [
    ...SLASHES,
    between('"', /("{3,255})/y, "$1"),
    between("@$", /(?:@\$?|\$@)"/y, '"', { doubled: true }),
    ...QUOTES,
  ],
  directives: true,
};

const go: Language = {
  words: words(CONTROL, "chan const defer fallthrough func go goto import interface map package range select struct type var true false nil iota any bool byte error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr"),
  regions: [...SLASHES, { kind: "string", open: "`", close: "`", lines: true }, ...QUOTES],
};

const python: Language = {
  words: words("False None True and as assert async await break class continue def del elif else except finally for from global if import in is lambda nonlocal not or pass raise return self try while with yield"),
  soft: words("case match type"),
  regions: [line("#"), TRIPLE, quoted("'''", { lines: true }), ...QUOTES],
};

/** What is between the parts of a file that are PHP. */
const TEMPLATE: Region = { kind: null, open: "?>", close: "<?", lines: true };

const php: Language = {
  words: words(
    CONTROL,
    "abstract and array as bool callable catch class clone const declare echo elseif empty endfor endforeach endif endswitch endwhile enum extends false final finally float fn foreach function global goto implements include include_once instanceof insteadof int interface isset iterable list match mixed namespace never new null object or parent php print private protected public readonly require require_once self static string this throw trait true try unset use var void xor yield",
  ),
  regions: [
    TEMPLATE,
    ...SLASHES,
    // `#[` begins an attribute.
    { kind: "comment", first: "#", open: /#(?!\[)/y, close: "" },
    between("<", /<<<[ \t]*["']?([A-Za-z_]\w{0,255})["']?$/y, "$1", { ownLine: true }),
    quoted('"', { lines: true, inserts: "{$" }),
    quoted("'", { lines: true }),
  ],
  start: TEMPLATE,
};

const erlang: Language = {
  words: words("after and andalso band begin bnot bor bsl bsr bxor case catch cond div else end fun if let maybe not of or orelse receive rem try when xor"),
  // `$"` is a character.
  regions: [line("%"), { kind: "string", first: "$", open: /\$\\?./y, close: null }, TRIPLE, quoted('"', { lines: true }), quoted("'")],
  clauses: true,
};

const elixir: Language = {
  words: words("after alias and case catch cond def defimpl defmacro defmodule defp defprotocol defstruct do else end false fn for if import in nil not or quote raise receive require rescue true try unless unquote use when with"),
  regions: [line("#"), { ...TRIPLE, inserts: "#{" }, quoted('"', { lines: true, inserts: "#{" }), quoted("'", { lines: true })],
};

const ruby: Language = {
  words: words("BEGIN END alias and begin break case class def defined do else elsif end ensure false for if in module next nil not or redo require rescue retry return self super then true undef unless until when while yield"),
  regions: [line("#"), quoted('"', { inserts: "#{" }), quoted("'"), quoted("`", { inserts: "#{" })],
};

const lua: Language = {
  words: words("and break do else elseif end false for function goto if in local nil not or repeat return then true until while"),
  regions: [between("-", /--\[(={0,255})\[/y, "]$1]", { kind: "comment" }), line("--"), between("[", /\[(={0,255})\[/y, "]$1]"), ...QUOTES],
};

const raku: Language = {
  words: words("class do else elsif for given has if is loop method multi my our proto return role self start sub take unless until use when while with"),
  regions: [line("#"), ...QUOTES],
};

const swift: Language = {
  words: words(CONTROL, "actor as async await catch class defer deinit enum extension false fileprivate func guard import in indirect init inout internal is lazy let mutating nil open operator override private protocol public repeat self Self some static struct subscript super throw throws true try typealias var weak where"),
  regions: [...NESTED, TRIPLE, quoted('"')],
};

/** The language of the demo. */
const scribe: Language = { words: words("fn let if else while return print apply"), regions: [line("//")] };

const BY_EXTENSION = new Map<string, Language>(
  Object.entries({ c, cpp, csharp, elixir, erlang, go, java, javascript, kotlin, lua, php, python, raku, ruby, rust, scala, scribe, swift }).flatMap(([name, language]) => extensions(name).map((each): [string, Language] => [each, language])),
);

function extensions(name: string): string[] {
  const others: Record<string, string> = {
    c: "c",
    cpp: "h cc cpp cxx c++ hh hpp hxx inc inl ipp tcc tpp cu",
    csharp: "cs",
    elixir: "ex exs",
    erlang: "erl hrl",
    javascript: "js mjs cjs jsx ts mts cts tsx",
    kotlin: "kt kts",
    php: "php phtml",
    python: "py pyi pyx pyw",
    raku: "raku rakumod p6 pm6 nqp",
    ruby: "rb",
    rust: "rs",
    scala: "scala sc",
  };
  return (others[name] ?? name).split(" ");
}

/** The language of a file, by its name; null if it is not known. */
export function languageOf(file: string): Language | null {
  // Scripts of Node itself.
  if (file.startsWith("node:")) return javascript;
  // Addresses of scripts may have a query.
  const path = /^[a-z]{2,16}:\/\//.test(file) ? file.split(/[?#]/, 1)[0] : file;
  const name = path.slice(path.lastIndexOf("/") + 1);
  const dot = name.lastIndexOf(".");
  return dot < 0 ? null : (BY_EXTENSION.get(name.slice(dot + 1).toLowerCase()) ?? null);
}
