; Runs until it is killed, in two functions.
define i64 @count_to(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %next = add i64 %i, 1
  %again = icmp ult i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret i64 %next
}

define i32 @main() {
entry:
  br label %loop
loop:
  %counted = call i64 @count_to(i64 1000000)
  %stop = icmp eq i64 %counted, 7
  br i1 %stop, label %done, label %loop
done:
  ret i32 0
}
