; Two functions with source lines; `mix` has a call of `step` inlined, with a call of `twist` inlined into that.
; For any machine; `run` has no debug information.

define i64 @mix(i64 %n) !dbg !10 {
entry:
  br label %loop, !dbg !12
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ], !dbg !12
  %h = phi i64 [ 17, %entry ], [ %hash, %loop ], !dbg !12
  %scaled = mul i64 %h, 6364136223846793005, !dbg !32
  %turned = lshr i64 %scaled, 7, !dbg !33
  %hash = xor i64 %turned, %scaled, !dbg !31
  %next = add i64 %i, 1, !dbg !14
  %done = icmp eq i64 %next, %n, !dbg !14
  br i1 %done, label %out, label %loop, !dbg !14
out:
  ret i64 %hash, !dbg !15
}

define i64 @fib(i64 %n) !dbg !16 {
  %small = icmp slt i64 %n, 2, !dbg !17
  br i1 %small, label %base, label %more, !dbg !17
base:
  ret i64 %n, !dbg !18
more:
  %a = sub i64 %n, 1, !dbg !19
  %x = call i64 @fib(i64 %a), !dbg !19
  %b = sub i64 %n, 2, !dbg !20
  %y = call i64 @fib(i64 %b), !dbg !20
  %sum = add i64 %x, %y, !dbg !21
  ret i64 %sum, !dbg !21
}

define i32 @run() {
  %m = call i64 @mix(i64 100000)
  %f = call i64 @fib(i64 16)
  ret i32 0
}

!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2, !3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, producer: "by hand", isOptimized: true, emissionKind: FullDebug)
!1 = !DIFile(filename: "mix.src", directory: "/src")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = !{i32 7, !"Dwarf Version", i32 4}
!4 = !DISubroutineType(types: !5)
!5 = !{}
!6 = !DIFile(filename: "step.src", directory: "/src")
!10 = distinct !DISubprogram(name: "mix", scope: !1, file: !1, line: 10, type: !4, scopeLine: 10, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!12 = !DILocation(line: 11, column: 3, scope: !10)
!13 = distinct !DILocation(line: 12, column: 9, scope: !10)
!14 = !DILocation(line: 13, column: 5, scope: !10)
!15 = !DILocation(line: 14, column: 3, scope: !10)
!16 = distinct !DISubprogram(name: "fib", scope: !1, file: !1, line: 20, type: !4, scopeLine: 20, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!17 = !DILocation(line: 21, column: 3, scope: !16)
!18 = !DILocation(line: 22, column: 5, scope: !16)
!19 = !DILocation(line: 23, column: 11, scope: !16)
!20 = !DILocation(line: 24, column: 11, scope: !16)
!21 = !DILocation(line: 25, column: 3, scope: !16)
!28 = distinct !DISubprogram(name: "step", scope: !6, file: !6, line: 30, type: !4, scopeLine: 30, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!29 = distinct !DISubprogram(name: "twist", scope: !6, file: !6, line: 40, type: !4, scopeLine: 40, spFlags: DISPFlagDefinition | DISPFlagOptimized, unit: !0)
!31 = !DILocation(line: 32, column: 7, scope: !28, inlinedAt: !13)
!30 = distinct !DILocation(line: 31, column: 4, scope: !28, inlinedAt: !13)
!32 = !DILocation(line: 41, column: 8, scope: !29, inlinedAt: !30)
!33 = !DILocation(line: 42, column: 8, scope: !29, inlinedAt: !30)
