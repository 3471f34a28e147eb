; About a second of work in several functions, with source lines, one of them without a frame pointer.
source_filename = "spin.src"

define i64 @fib(i64 %n) "frame-pointer"="none" !dbg !10 {
  %small = icmp slt i64 %n, 2, !dbg !12
  br i1 %small, label %base, label %more, !dbg !12
base:
  ret i64 %n, !dbg !13
more:
  %a = sub i64 %n, 1, !dbg !14
  %x = call i64 @fib(i64 %a), !dbg !14
  %b = sub i64 %n, 2, !dbg !15
  %y = call i64 @fib(i64 %b), !dbg !15
  %sum = add i64 %x, %y, !dbg !16
  ret i64 %sum, !dbg !16
}

define i64 @"mix of words"(i64 %n) !dbg !20 {
entry:
  br label %loop, !dbg !22
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ], !dbg !22
  %h = phi i64 [ 17, %entry ], [ %hash, %loop ], !dbg !22
  %scaled = mul i64 %h, 6364136223846793005, !dbg !23
  %hash = add i64 %scaled, %i, !dbg !24
  %next = add i64 %i, 1, !dbg !25
  %done = icmp eq i64 %next, %n, !dbg !25
  br i1 %done, label %out, label %loop, !dbg !25
out:
  ret i64 %hash, !dbg !26
}

define i32 @main() !dbg !30 {
entry:
  br label %loop, !dbg !32
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ], !dbg !32
  %f = call i64 @fib(i64 24), !dbg !33
  %m = call i64 @"mix of words"(i64 100000), !dbg !34
  %next = add i32 %i, 1, !dbg !35
  %done = icmp eq i32 %next, 1200, !dbg !35
  br i1 %done, label %out, label %loop, !dbg !35
out:
  ret i32 0, !dbg !36
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, producer: "by hand", isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "spin.src", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 7, !"Dwarf Version", i32 4}
!4 = !DISubroutineType(types: !5)
!5 = !{}
!10 = distinct !DISubprogram(name: "fib", scope: !1, file: !1, line: 10, type: !4, scopeLine: 10, spFlags: DISPFlagDefinition, unit: !0)
!12 = !DILocation(line: 11, column: 3, scope: !10)
!13 = !DILocation(line: 12, column: 3, scope: !10)
!14 = !DILocation(line: 13, column: 3, scope: !10)
!15 = !DILocation(line: 14, column: 3, scope: !10)
!16 = !DILocation(line: 15, column: 3, scope: !10)
!20 = distinct !DISubprogram(name: "mix of words", scope: !1, file: !1, line: 20, type: !4, scopeLine: 20, spFlags: DISPFlagDefinition, unit: !0)
!22 = !DILocation(line: 21, column: 3, scope: !20)
!23 = !DILocation(line: 22, column: 3, scope: !20)
!24 = !DILocation(line: 23, column: 3, scope: !20)
!25 = !DILocation(line: 24, column: 3, scope: !20)
!26 = !DILocation(line: 25, column: 3, scope: !20)
!30 = distinct !DISubprogram(name: "main", scope: !1, file: !1, line: 30, type: !4, scopeLine: 30, spFlags: DISPFlagDefinition, unit: !0)
!32 = !DILocation(line: 31, column: 3, scope: !30)
!33 = !DILocation(line: 32, column: 3, scope: !30)
!34 = !DILocation(line: 33, column: 3, scope: !30)
!35 = !DILocation(line: 34, column: 3, scope: !30)
!36 = !DILocation(line: 35, column: 3, scope: !30)
