#lang racket/base
(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))
(display (for/sum ([_ 6]) (fib 34)))
