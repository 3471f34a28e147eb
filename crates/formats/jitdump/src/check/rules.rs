//! The rules: a stable name, the severity, the cost, and the fix.

use super::severity::Severity;

/// A rule of the checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Its name, which is stable.
    pub name: &'static str,
    /// How severe a violation is.
    pub severity: Severity,
    /// What a violation costs the user, and with which tool.
    pub cost: &'static str,
    /// How the writer can fix it.
    pub fix: &'static str,
}

macro_rules! rules {
    ($($id:ident = $severity:ident $name:literal cost $cost:literal fix $fix:literal;)*) => {
        $(pub(super) const $id: Rule = Rule {
            name: $name,
            severity: Severity::$severity,
            cost: $cost,
            fix: $fix,
        };)*

        /// All rules, in the order in which findings of equal severity are reported.
        pub const RULES: &[Rule] = &[$($id),*];
    };
}

rules! {
    // The file.
    NOT_A_JITDUMP = Error "not-a-jitdump"
        cost "no tool reads the file"
        fix "begin the file with the 40-byte header: magic 0x4A695444, version 1";
    UNKNOWN_VERSION = Error "unknown-version"
        cost "perf inject refuses versions above 1"
        fix "write version 1, also with UNWINDING_INFO";
    FILE_NAME = Error "file-name"
        cost "perf inject accepts only files named jit-PID.dump and skips others without a \
              message"
        fix "name the file jit-PID.dump, with nothing but the process id in between";
    FILE_NAME_PID = Warning "file-name-pid"
        cost "perf inject compares the number in the name with the process that mapped the file, \
              and skips the file if they differ"
        fix "put the same process id into the file's name and its header";

    // The header.
    VERSION_ZERO = Warning "version-zero"
        cost "readers may refuse the file"
        fix "write version 1";
    HEADER_SIZE = Error "header-size"
        cost "perf inject reads records from the wrong place unless the header has 40 bytes: with 48 \
              it finds no function, with more it fails"
        fix "write total_size 40, and the records directly after the header";
    NO_MACHINE = Warning "no-machine"
        cost "tools that read the code on another machine cannot disassemble it"
        fix "write the ELF e_machine of the code into elf_mach";
    WRONG_MACHINE = Error "wrong-machine"
        cost "tools that trust the header disassemble and unwind the code as if it were for \
              another processor"
        fix "write the ELF e_machine of the machine that the code is for, not a constant";
    HEADER_PADDING = Note "header-padding"
        cost "none today; the field is reserved"
        fix "write 0 into pad1";
    NO_PID = Warning "no-pid"
        cost "a dump whose file was renamed cannot be assigned to a process"
        fix "write the process id into the header";
    UNKNOWN_FLAGS = Error "unknown-flags"
        cost "perf inject refuses the file"
        fix "write 0 into flags, or 1 if timestamps are counts of the processor's clock";
    HEADER_CLOCK = Warning "header-clock"
        cost "the offset between the dump's clock and the recording's cannot be computed from the \
              header"
        fix "take the header's timestamp from the clock of the records, CLOCK_MONOTONIC";
    RECORD_CLOCK = Error "record-clock"
        cost "perf inject places all code after the last sample: nothing is resolved"
        fix "take timestamps from CLOCK_MONOTONIC";

    // The stream of records.
    HOLE = Error "hole"
        cost "perf inject stops at a record of size 0 and loses all records after it, without a \
              message"
        fix "reserve space in the file only when the record is complete, or append with one \
              write";
    GARBAGE = Error "garbage"
        cost "perf inject continues at the wrong place, or stops; the records after it are lost"
        fix "write each record in one piece, under one lock or with O_APPEND; flush before fork";
    RECORD_TOO_SMALL = Error "record-too-small"
        cost "perf inject reads fields from beyond the record"
        fix "include the record's header and all fields in its total_size";
    CUT_OFF = Warning "cut-off"
        cost "the last record is lost, without a message"
        fix "flush after each record, so that none is lost if the process is killed";
    ZERO_TAIL = Note "zero-tail"
        cost "none: all readers stop at the first record of size 0"
        fix "truncate the file to its records when closing it";
    NO_CODE = Warning "no-code"
        cost "perf inject succeeds, injects nothing and prints nothing"
        fix "write a LOAD for each code, and flush it";
    UNKNOWN_RECORD = Note "unknown-record"
        cost "perf inject warns once for each such record and skips it; samply skips it"
        fix "use only types 0 to 4 if users are to see no warnings";
    RECORD_AFTER_CLOSE = Warning "record-after-close"
        cost "perf inject and samply stop reading at CLOSE and do not see later code"
        fix "write CLOSE as the last record";
    NO_CLOSE = Note "no-close"
        cost "readers of a live dump cannot tell that it is complete"
        fix "write CLOSE at exit";
    TIMESTAMP_ZERO = Error "timestamp-zero"
        cost "perf script and report place the code before all samples, and recompiled code at \
              the same address wrongly"
        fix "write the time at which the code became executable";
    TIMESTAMP_ORDER = Note "timestamp-order"
        cost "readers that process records in file order may assign a sample to the wrong one of \
              two codes at the same address"
        fix "take the time under the lock that also covers the write of the record";
    TIMESTAMP_EQUAL = Note "timestamp-equal"
        cost "only file order tells which of two codes at one address came first"
        fix "take the time again for each record, in nanoseconds";

    // LOAD.
    NAME_NOT_TERMINATED = Error "name-not-terminated"
        cost "perf inject reads the name from beyond the record"
        fix "write a NUL after the name, and include it in total_size";
    CODE_TOO_LARGE = Error "code-too-large"
        cost "perf inject takes other bytes for code, or crashes; samply drops the code"
        fix "set total_size to 56 + length of the name + 1 + code_size";
    CODE_MISSING = Error "code-missing"
        cost "perf inject takes the bytes before the record for code, or crashes"
        fix "write the code after the name, or no record for code without bytes";
    LOAD_PADDING = Error "load-padding"
        cost "perf inject takes the last code_size bytes of the record for code: disassembly is \
              shifted"
        fix "end the record with the code's last byte";
    ADDRESS_ZERO = Error "address-zero"
        cost "no sample can be in the code"
        fix "write the address at which the code runs into code_addr";
    ADDRESS_WRAPS = Error "address-wraps"
        cost "readers overflow computing the end of the code"
        fix "write the code's own address and size";
    VMA_DIFFERS = Note "vma-differs"
        cost "none with perf and samply, which use code_addr; readers that use vma see no code"
        fix "write code_addr into vma too";
    THUMB_BIT = Warning "thumb-bit"
        cost "perf inject maps and disassembles the code one byte too high"
        fix "clear bit 0 of code_addr";
    CODE_EMPTY = Warning "code-empty"
        cost "no sample can be in the code"
        fix "write the size of the code, even if its bytes do not matter";
    CODE_ZEROED = Warning "code-zeroed"
        cost "perf annotate shows no instructions"
        fix "write the code's bytes after it is generated and relocated";
    CODE_ALTERED = Warning "code-altered"
        cost "perf annotate shows wrong instructions at the code's end"
        fix "write the true bytes; solve confusion of identical codes in another way";
    DUPLICATE_INDEX = Error "duplicate-index"
        cost "perf inject names its files by pid and code_index: the last code of an index overwrites \
              the others, and all of them get its name"
        fix "give each LOAD a unique number, across threads and recompilation";
    PID_DIFFERS = Note "pid-differs"
        cost "perf inject assigns the code to the record's process and not to the one that mapped \
              the file"
        fix "write a separate dump in a forked child";
    OLDER_THAN_HEADER = Note "older-than-header"
        cost "none with perf and samply"
        fix "write the header before the first code is generated";
    PARTIAL_OVERLAP = Note "partial-overlap"
        cost "tools show the rest of the older code as live, or as unknown"
        fix "none needed if code memory was freed and reused";
    NAME_EMPTY = Warning "name-empty"
        cost "perf report shows an address in place of a name"
        fix "give every code a name, including stubs and trampolines";
    NAME_CONTROL = Warning "name-control"
        cost "a line break or tab in a name breaks the lines of perf script and every tool that \
              parses them"
        fix "remove control characters from names";
    NAME_NOT_UTF8 = Warning "name-not-utf8"
        cost "samply shows an empty name; others show mojibake"
        fix "write names in UTF-8";

    // MOVE.
    MOVE_OF_UNKNOWN = Error "move-of-unknown"
        cost "perf inject maps a file that does not exist: samples stay unresolved"
        fix "write the LOAD first, and its code_index into the MOVE";
    MOVE_MISMATCH = Warning "move-mismatch"
        cost "readers that look for the code at old_code_addr do not find it"
        fix "write the address of the code's last LOAD or MOVE, and its unchanged size";

    // DEBUG_INFO.
    DEBUG_AFTER_LOAD = Error "debug-after-load"
        cost "perf inject assigns the lines to the next code, and none to this one"
        fix "write DEBUG_INFO before the LOAD of its code";
    DEBUG_NOT_ADJACENT = Error "debug-not-adjacent"
        cost "perf inject assigns the lines to whatever LOAD comes next, and loses others"
        fix "hold one lock from DEBUG_INFO to the LOAD of the same code";
    DEBUG_WITHOUT_LOAD = Warning "debug-without-load"
        cost "the lines are lost"
        fix "write the LOAD of the code after it";
    DEBUG_COUNT = Error "debug-count"
        cost "perf inject reads beyond the record; readers that allocate memory by nr_entry run \
              out of memory"
        fix "set nr_entry to the number of entries that follow";
    DEBUG_GARBLED = Error "debug-garbled"
        cost "perf inject takes the first NUL for the name's end, reads the next entries at wrong \
              places, and shows wrong files and lines, or none"
        fix "write names from memory that has not been freed, without NULs";
    DEBUG_ADDRESS_BIAS = Warning "debug-address-bias"
        cost "only an old perf expected this: current perf shows source lines off by 64 bytes"
        fix "write the true address of the code that the line belongs to";
    DEBUG_OUTSIDE = Warning "debug-outside"
        cost "perf inject writes lines for addresses outside the code; the code's own may be lost"
        fix "write only entries for the code itself, in the range of its LOAD";
    DEBUG_ORDER = Note "debug-order"
        cost "readers that use binary search miss some entries; perf writes line tables that go \
              backwards"
        fix "sort the entries by address";
    DEBUG_EMPTY = Note "debug-empty"
        cost "none, except wasted space"
        fix "write no DEBUG_INFO for code without lines";
    DEBUG_BLANK = Note "debug-blank"
        cost "perf shows lines of a file without a name"
        fix "omit entries that have neither line nor file";
    DEBUG_NO_FILE = Warning "debug-no-file"
        cost "tools show a line number without a file"
        fix "write the file name of each line";
    SAME_FILE = Warning "same-file"
        cost "perf before 6.12 and samply take 0xff for the file's name"
        fix "write the file's name in every entry";
    SAME_FILE_FIRST = Error "same-file-first"
        cost "there is no previous file: every reader shows a wrong one"
        fix "write the file's name in the first entry of every record";
    DEBUG_TAIL = Note "debug-tail"
        cost "none: all readers use nr_entry; the extra bytes may be entries that were not \
              counted"
        fix "end total_size with the last entry, padded to a multiple of 8 at most";

    // Extensions.
    EXTENSION_MALFORMED = Warning "extension-malformed"
        cost "jitscribe loses what the extension describes; other tools do not read it"
        fix "write the tail as specified in docs/format.md, its sizes last";
    GROUP_WITHOUT_LOAD = Warning "group-without-load"
        cost "no tool knows the code"
        fix "write the LOAD into the group, or flag the code as without bytes";
    LEFT_OUT = Warning "left-out"
        cost "samples in codes that were not written stay unresolved, or are attributed to dead \
              code"
        fix "set a higher limit, or let the runtime unload dead code so that its space is reused";

    // UNWINDING_INFO.
    UNWINDING_SIZES = Error "unwinding-sizes"
        cost "perf inject reads beyond the record"
        fix "choose total_size so that unwinding_size bytes fit into it, and unwinding_size so \
              that eh_frame_hdr_size bytes fit";
    UNWINDING_NO_HEADER = Error "unwinding-no-header"
        cost "perf inject keeps the tables for all later codes, which are then unwound by the \
              wrong table"
        fix "write an .eh_frame_hdr after the .eh_frame";
    UNWINDING_ORDER = Error "unwinding-order"
        cost "perf inject expects .eh_frame first: it puts both sections at wrong places, and no \
              stack is unwound through the code"
        fix "write .eh_frame first and .eh_frame_hdr after it, regardless of the specification";
    UNWINDING_MALFORMED = Error "unwinding-malformed"
        cost "no stack is unwound through the code"
        fix "write .eh_frame with a CIE first, then .eh_frame_hdr of version 1";
    UNWINDING_NOT_MAPPED = Warning "unwinding-not-mapped"
        cost "perf with libunwind cannot read the tables: no stack is unwound through the code"
        fix "leave space for the tables after the code and write its size into mapped_size";
    UNWINDING_MAPPED_SIZE = Warning "unwinding-mapped-size"
        cost "perf maps less than the tables: unwinders cannot read their end"
        fix "set mapped_size to at least unwinding_size";
    UNWINDING_WITHOUT_LOAD = Warning "unwinding-without-load"
        cost "the tables are lost, or assigned to another code"
        fix "hold one lock from UNWINDING_INFO to the LOAD of the same code";
}
