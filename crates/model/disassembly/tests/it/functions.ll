; Compiled for AArch64 by tests/objdump.rs.
@table = global [64 x i64] zeroinitializer
@single = global double 0.0
declare i64 @outside(i64, i64)

define i64 @collatz(i64 %start) {
entry:
  br label %loop
loop:
  %value = phi i64 [ %start, %entry ], [ %next, %merge ]
  %steps = phi i64 [ 0, %entry ], [ %more, %merge ]
  %end = icmp eq i64 %value, 1
  br i1 %end, label %exit, label %body
body:
  %bit = and i64 %value, 1
  %odd = icmp ne i64 %bit, 0
  br i1 %odd, label %up, label %down
up:
  %triple = mul i64 %value, 3
  %plus = add i64 %triple, 1
  %called = call i64 @outside(i64 %plus, i64 %steps)
  br label %merge
down:
  %half = lshr i64 %value, 1
  br label %merge
merge:
  %next = phi i64 [ %called, %up ], [ %half, %down ]
  %more = add i64 %steps, 1
  br label %loop
exit:
  ret i64 %steps
}

define i64 @constants(i64 %a, i32 %b, i16 %c, i8 %d) {
  %1 = xor i64 %a, 1311768467463790320
  %2 = sext i32 %b to i64
  %3 = sext i16 %c to i64
  %4 = zext i8 %d to i64
  %5 = add i64 %1, %2
  %6 = sdiv i64 %5, %3
  %7 = ashr i64 %6, %4
  %8 = and i64 %7, 72340172838076673
  %9 = or i64 %8, 281470681743360
  %10 = call i64 @llvm.ctlz.i64(i64 %9, i1 false)
  %11 = call i64 @llvm.bswap.i64(i64 %10)
  %12 = sub i64 %11, 4095
  ret i64 %12
}
declare i64 @llvm.ctlz.i64(i64, i1)
declare i64 @llvm.bswap.i64(i64)

define double @floats(double %a, float %b, i64 %c, i32 %index) {
  %1 = fpext float %b to double
  %2 = fadd double %a, %1
  %3 = sitofp i64 %c to double
  %4 = fmul double %2, %3
  %5 = fdiv double %4, 1.5
  %6 = fcmp ogt double %5, 0.0
  %7 = select i1 %6, double %5, double %a
  store double %7, double* @single
  %place = getelementptr [64 x i64], [64 x i64]* @table, i32 0, i32 %index
  %old = load i64, i64* %place
  %new = add i64 %old, %c
  store i64 %new, i64* %place
  %atomic = atomicrmw add i64* %place, i64 7 seq_cst
  %swapped = cmpxchg i64* %place, i64 %atomic, i64 %c acq_rel monotonic
  ret double %7
}

define i32 @choose(i32 %which, i32 %x) {
entry:
  switch i32 %which, label %other [ i32 0, label %a
                                    i32 1, label %b
                                    i32 2, label %c
                                    i32 3, label %d
                                    i32 4, label %e ]
a:
  %ra = add i32 %x, 100000
  ret i32 %ra
b:
  %rb = mul i32 %x, %x
  ret i32 %rb
c:
  %rc = udiv i32 %x, 7
  ret i32 %rc
d:
  %rd = shl i32 %x, 5
  ret i32 %rd
e:
  %re = srem i32 %x, 10
  ret i32 %re
other:
  ret i32 -1
}

define void @vector(i32* %a, i32* %b, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %pa = getelementptr i32, i32* %a, i64 %i
  %pb = getelementptr i32, i32* %b, i64 %i
  %va = bitcast i32* %pa to <4 x i32>*
  %vb = bitcast i32* %pb to <4 x i32>*
  %x = load <4 x i32>, <4 x i32>* %va
  %y = load <4 x i32>, <4 x i32>* %vb
  %s = add <4 x i32> %x, %y
  %m = mul <4 x i32> %s, %x
  store <4 x i32> %m, <4 x i32>* %va
  %next = add i64 %i, 4
  %done = icmp uge i64 %next, %n
  br i1 %done, label %exit, label %loop
exit:
  ret void
}
