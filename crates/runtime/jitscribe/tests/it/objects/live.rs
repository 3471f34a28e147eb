//! Libraries for Windows, loaded and unwound by wine.

use super::*;

/// Loads a library, and calls each function that a list names.
const LOAD: &str = r#"
#include <stdio.h>
#include <string.h>
#include <windows.h>

int main(void)
{
    HMODULE library = LoadLibraryA("code.dll");
    FILE *names = fopen("names", "rb");
    char name[256];
    if (library == NULL || names == NULL) {
        printf("error %lu\n", GetLastError());
        return 1;
    }
    while (fgets(name, sizeof name, names) != NULL) {
        name[strcspn(name, "\n")] = 0;
        unsigned (__attribute__((sysv_abi)) *call)(unsigned) = (void *)GetProcAddress(library, name);
        if (call == NULL) {
            printf("no %s\n", name);
            return 1;
        }
        printf("%u\n", call(7));
    }
    return 0;
}
"#;

/// Builds a program for Windows and runs it in the folder. Returns what it printed.
fn on_windows(folder: &Path, source: &str) -> String {
    std::fs::write(folder.join("program.c"), source).unwrap();
    let wine = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scripts/wine.sh");
    let run = |program: &str, arguments: &[&str]| {
        let output = std::process::Command::new(program)
            .args(arguments)
            .current_dir(folder)
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap_or_else(|error| panic!("{program}: {error}: scripts/setup.sh installs it"));
        let (out, err) = (&output.stdout, String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{}{err}", String::from_utf8_lossy(out));
        String::from_utf8(output.stdout).unwrap()
    };
    run(
        "x86_64-w64-mingw32-gcc",
        &["-O1", "-fno-omit-frame-pointer", "-o", "program.exe", "program.c"],
    );
    run(wine, &["program.exe"])
}

#[test]
fn windows_loads_the_same_functions() {
    let folder = tempfile::tempdir().unwrap();
    let scribe = Scribe::builder().build();
    let (_memory, announced, expected) = announce(scribe);
    let written =
        objects::write(&scribe, ObjectFormat::Pe, folder.path().join("code.dll")).unwrap();
    assert_eq!((written.symbols, written.exported), (1000, 1000));
    drop(announced);
    let names: String = (0..1000).map(|number| name(number) + "\n").collect();
    std::fs::write(folder.path().join("names"), names).unwrap();
    let said = on_windows(folder.path(), LOAD);
    let found: Vec<u32> = said.lines().map(|line| line.trim().parse().unwrap()).collect();
    assert_eq!(found, expected);
}

/// Has the library's code call back, and unwinds its frame from there by what Windows knows of it. Prints where in the code that was,
/// and what its caller's registers were.
const WALK: &str = r#"
#include <stdio.h>
#include <windows.h>

static HMODULE library;

/* The compiler describes functions of this convention in no table of Windows, so the first frame is undone by hand. */
__attribute__((sysv_abi)) static void walk(size_t callback, size_t caller)
{
    CONTEXT context;
    DWORD64 *frame = __builtin_frame_address(0), base, establisher;
    void *data;
    RtlCaptureContext(&context);
    context.Rbp = frame[0];
    context.Rip = frame[1];
    context.Rsp = (DWORD64)(frame + 2);
    RUNTIME_FUNCTION *function = RtlLookupFunctionEntry(context.Rip, &base, NULL);
    if (function == NULL || base != (DWORD64)library) {
        printf("not described\n");
        return;
    }
    printf("at %u\n", (unsigned)(context.Rip - caller));
    RtlVirtualUnwind(UNW_FLAG_NHANDLER, base, context.Rip, function, &context, &data, &establisher, NULL);
    printf("called with rbx %llx, rbp %llx\n", context.Rbx, context.Rbp);
    function = RtlLookupFunctionEntry(context.Rip, &base, NULL);
    printf("by %s\n", function != NULL && base == (DWORD64)GetModuleHandleA(NULL) ? "the program" : "something else");
}

int main(void)
{
    library = LoadLibraryA("code.dll");
    void *caller = library ? (void *)GetProcAddress(library, "caller") : NULL;
    if (caller == NULL) {
        printf("error %lu\n", GetLastError());
        return 1;
    }
    __asm__ volatile(
        "mov $0x1234, %%rbx\n push %%rbp\n mov $0x5678, %%rbp\n call *%%rax\n pop %%rbp"
        : : "a"(caller), "D"(walk), "S"(caller)
        : "rbx", "rcx", "rdx", "r8", "r9", "r10", "r11", "memory", "cc");
    return 0;
}
"#;

#[test]
fn windows_walks_through_its_frames() {
    let folder = tempfile::tempdir().unwrap();
    let scribe = Scribe::builder().build();
    let code = Memory::new().place(&CALLER);
    let loaded = scribe.load(&Code::new(code).named("caller").unwind(Unwind::Rows(&ROWS)));
    objects::write(&scribe, ObjectFormat::Pe, folder.path().join("code.dll")).unwrap();
    drop(loaded);
    let said = on_windows(folder.path(), WALK);
    // Behind the call, at 10.
    let expected = "at 10\ncalled with rbx 1234, rbp 5678\nby the program\n";
    assert_eq!(said.replace('\r', ""), expected);
}
