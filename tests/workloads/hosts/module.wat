;; Three functions. For another version of the program, a test changes a number in the second, and moves the third one line down.
(module $hosts
  (func $kept (export "kept") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 17)) (local.get 0)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  (func $changed (export "changed") (param i32) (result i32) (local i32)
    (loop $again
      (local.set 1 (i32.add (i32.mul (local.get 1) (i32.const 31)) (local.get 0)))
      (br_if $again (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))
    (local.get 1))
  ;; Moved.
  (func $moved (export "moved") (param i32) (result i32)
    (i32.add (call $kept (local.get 0)) (call $changed (local.get 0)))))
