// Package codelog reads what JIT compilers say about their code: the code logs
// of running processes, and jitdump files.
//
// docs/format.md of the project specifies both. A code log is read while its
// process writes it, without stopping the process; see [Open] and [Process].
// A jitdump is read at once with [ParseDump], or while it grows with
// [FileReader]. An [Index] answers which code was at an address at a time, and
// gives its frames with the calls that were inlined.
//
// Input is hostile: no input makes the package panic, allocate by a count from
// the input, or take more than about linear time. What could be read of a
// damaged file is kept.
//
// Byte slices that the package returns refer to what it has read; callers must
// not change them. No type may be used by several goroutines at the same time.
package codelog
