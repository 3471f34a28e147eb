# How the Makefiles of the libraries for C make a static library of the archive that cargo built.
#
# $(call archive,CARGO'S ARCHIVE,SYMBOLS,NAME): shell commands that leave NAME.o and libNAME.a in the folder "$$work".
# It is one object, in which all symbols but these are local: a program may contain another library that is written in Rust.
# - Groups of sections are undone: of two with one name, the linker would keep one, whose symbols are local here.
# - What the linker left out referred to weak symbols that are not defined, which it leaves behind as if they were local. They would
#   become strong, and those of another library's could not stay undefined.
# - LLVM's bitcode is removed: that of a newer LLVM than the system's makes its `ar` abort.
# - The function of Rust's standard library by which a panic prints a backtrace (if RUST_BACKTRACE is set) is replaced by one that prints
#   nothing: `without_backtraces`.
# Sections stay apart, so that a program's linker can leave out those that it does not need.
OBJCOPY ?= objcopy
READELF ?= readelf
STRIP ?= strip
# A library with an unwinder for our own panics, which becomes a part of ours. Empty: the program's serves. Code is still registered with the
# program's, by functions whose names ours must not have.
unwinder ?=

archive = \
    $(if $(unwinder),$(OBJCOPY) --redefine-sym __register_frame=own_register_frame \
        --redefine-sym __deregister_frame=own_deregister_frame '$(unwinder)' "$$work/unwinder.a";) \
    $(call joined,$(2),'$(1)' $(if $(unwinder),"$$work/unwinder.a")); \
    $(call without_backtraces,$(2)); \
    $(READELF) -sW "$$work/whole.o" | awk 'NF == 8 && $$5 == "LOCAL" && $$7 == "UND" { print $$8 }' >"$$work/left"; \
    [ ! -s "$$work/left" ] || $(OBJCOPY) --strip-symbols="$$work/left" "$$work/whole.o"; \
    $(OBJCOPY) --remove-section=.llvmbc --remove-section=.llvmcmd $(2:%=--keep-global-symbol=%) "$$work/whole.o" "$$work/$(3).o"; \
    $(AR) rcsD "$$work/lib$(3).a" "$$work/$(3).o"

# $(call joined,SYMBOLS,FILES): one object with what the symbols need of the files.
joined = $(CC) -r -nostdlib -Wl,--gc-sections,--force-group-allocation $(1:%=-Wl,-u,%) -o "$$work/whole.o" $(2)

# $(call without_backtraces,SYMBOLS): the function's bytes are replaced by those of a C function that returns 0, which is Rust's `Ok(())`
# here. What it referred to, readers of debug info and of compressed sections, is left out then: a fifth of a megabyte. Rust has no option
# for this: its standard library is compiled beforehand, and each panic refers to the hook for panics, which refers to this function.
#
# Panics are caught and have their messages as before. The function is found by its name. A version of Rust that calls it otherwise gives a
# larger library, which the tests do not accept. The same holds for machines on which this was not tried.
without_backtraces = \
    case $$($(CC) -dumpmachine) in x86_64* | aarch64* | riscv64*) \
        $(READELF) -SW "$$work/whole.o" | sed -n 's/^ *\[ *[0-9]*\] *\(\.text[^ ]*DisplayBacktrace[^ ]*3fmt[^ ]*\) *PROGBITS */\1 /p' | \
            awk '{ print $$1, $$4 }' >"$$work/prints" ;; \
        *) : >"$$work/prints" ;; \
    esac; \
    if [ -s "$$work/prints" ]; then \
        printf 'int nothing(void) { return 0; }\n' | $(CC) -Os -c -x c -o "$$work/nothing.o" -; \
        while read -r section size; do \
            $(OBJCOPY) -O binary --only-section=.text "$$work/nothing.o" "$$work/nothing"; \
            truncate -s "$$((0x$$size))" "$$work/nothing"; \
            $(OBJCOPY) --remove-relocations="$$section" --update-section "$$section=$$work/nothing" "$$work/whole.o"; \
        done <"$$work/prints"; \
        mv "$$work/whole.o" "$$work/patched.o"; \
        $(call joined,$(1),"$$work/patched.o"); \
    fi

# System libraries that they need: `rustc --print native-static-libs`, but for libgcc_s. Compilers link that, or with `-static`
# libgcc_eh, by themselves.
static_needs := -lutil -lrt -lpthread -lm -ldl -lc
