(defun fib (n) (declare (fixnum n)) (if (< n 2) n (+ (the fixnum (fib (- n 1))) (the fixnum (fib (- n 2))))))
(compile 'fib)
(print (loop repeat 6 sum (fib 36)))
