# How the Makefiles of the libraries for C make a static library of the archive that cargo built.
#
# $(call archive,CARGO'S ARCHIVE,SYMBOLS,NAME): shell commands that leave NAME.o and libNAME.a in the folder "$$work".
# It is one object, in which all symbols but these are local: a program may contain another library that is written in Rust.
# - Groups of sections are undone: of two with one name, the linker would keep one, whose symbols are local here.
# - What the linker left out referred to weak symbols that are not defined, which it leaves behind as if they were local. They would
#   become strong, and those of another library's could not stay undefined.
# - LLVM's bitcode is removed: that of a newer LLVM than the system's makes its `ar` abort.
# Sections stay apart, so that a program's linker can leave out those that it does not need.
OBJCOPY ?= objcopy
READELF ?= readelf

archive = \
    $(CC) -r -nostdlib -Wl,--gc-sections,--force-group-allocation $(2:%=-Wl,-u,%) -o "$$work/whole.o" '$(1)'; \
    $(READELF) -sW "$$work/whole.o" | awk 'NF == 8 && $$5 == "LOCAL" && $$7 == "UND" { print $$8 }' >"$$work/left"; \
    $(OBJCOPY) --strip-symbols="$$work/left" "$$work/whole.o"; \
    $(OBJCOPY) --remove-section=.llvmbc --remove-section=.llvmcmd $(2:%=--keep-global-symbol=%) "$$work/whole.o" "$$work/$(3).o"; \
    $(AR) rcsD "$$work/lib$(3).a" "$$work/$(3).o"

# System libraries that they need: `rustc --print native-static-libs`, but for libgcc_s. Compilers link that, or with `-static`
# libgcc_eh, by themselves.
static_needs := -lutil -lrt -lpthread -lm -ldl -lc
