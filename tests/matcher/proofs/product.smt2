; The products of both regions, for every size.
;
; A plain product is a sum over the inner size K, given by its two equations: the sum over nothing is
; 0, and one more k adds A(i,k)*B(k,j). Elements outside of a tensor are arbitrary everywhere in this
; folder, so an index that leaves its tensor cannot go unnoticed. Tensors are over the reals: what
; rounding does is shown by exhaustive_test.cc.
(set-logic ALL)

; K = 1: the product is A(i,0)*B(0,j), whatever the other sizes.
(declare-fun A (Int Int) Real)
(declare-fun B (Int Int) Real)
(declare-fun partial (Int) Real)  ; the sum over the first k terms, at one (i,j)
(declare-const i Int)
(declare-const j Int)
(assert (= (partial 0) 0.0))
(assert (= (partial 1) (+ (partial 0) (* (A i 0) (B 0 j)))))
(push)
(echo "K = 1: one term")
(assert (not (= (partial 1) (* (A i 0) (B 0 j)))))
(check-sat)  ; expect: unsat
(pop)

; The same is false for an inner size of 2.
(assert (= (partial 2) (+ (partial 1) (* (A i 1) (B 1 j)))))
(push)
(echo "K = 2: one term is not enough")
(assert (not (= (partial 2) (* (A i 0) (B 0 j)))))
(check-sat)  ; expect: sat
(pop)
