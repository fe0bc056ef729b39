; expand_mean_derivative, for every r and c > 0:
;
;   b = broadcast_in_dim(g) : [r,c]      p = ones[r,1] @ g[1,1]      : [r,1]
;   q = divide(b, d)                     e = (p @ ones[1,c]) * (1/d) : [r,c]
;
; e has the shape of q, its inner sizes agree, and e(i,j) = q(i,j) for every (i,j) of [r,c].
(set-logic ALL)
(declare-const r Int)
(declare-const c Int)
(declare-const i Int)
(declare-const j Int)
(assert (and (> r 0) (> c 0) (<= 0 i) (< i r) (<= 0 j) (< j c)))

; What an index outside of a tensor reads: anything.
(declare-fun outside (Int Int Int) Real)
(define-fun ones ((tensor Int) (rows Int) (columns Int) (y Int) (x Int)) Real
  (ite (and (<= 0 y) (< y rows) (<= 0 x) (< x columns)) 1.0 (outside tensor y x)))
(declare-const g Real)  ; the one element
(define-fun G ((y Int) (x Int)) Real (ite (and (= y 0) (= x 0)) g (outside 0 y x)))

; Element (i,j) of broadcast_in_dim: operand axis a lies along result axis dims[a], and a size of 1
; is read at 0.
(define-fun expanded ((size Int) (index Int)) Int (ite (= size 1) 0 index))
(declare-const turned Bool)  ; dims are [0,1] or [1,0]
(define-fun b () Real (ite turned (G (expanded 1 j) (expanded 1 i)) (G (expanded 1 i) (expanded 1 j))))

; The region, by its K = 1 products (product.smt2), with ones of any two sizes.
(define-fun e ((ones_rows Int) (ones_columns Int) (scale Real)) Real
  (* (* (* (ones 1 ones_rows 1 i 0) (G 0 0)) (ones 2 1 ones_columns 0 j)) scale))

(declare-const d Real)
(declare-const q Real)
(declare-const inverse Real)  ; 1/d
(assert (=> (not (= d 0.0)) (and (= (* q d) b) (= (* inverse d) 1.0))))

(push)
(echo "r*c is no zero, so 1/(r*c) is a number")
(assert (= (* r c) 0))
(check-sat)  ; expect: unsat
(pop)

; Do the inner sizes of left @ g @ right agree, and has the result the shape of q?
(define-fun fits ((left_rows Int) (left_columns Int) (g_rows Int) (g_columns Int) (right_rows Int)
                  (right_columns Int)) Bool
  (and (= left_columns g_rows) (= g_columns right_rows) (= left_rows r) (= right_columns c)))

(push)
(echo "[r,1] @ [1,1] @ [1,c]: the inner sizes agree, the shape is that of q")
(assert (not (fits r 1 1 1 1 c)))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "e(i,j) = g/d, for every d but 0")
(assert (not (= d 0.0)))
(assert (not (= (e r c inverse) q)))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "e(i,j) = g/(r*c)")
(assert (= d (to_real (* r c))))
(assert (not (= (* r c) 0)))  ; shown above
(assert (not (= (e r c inverse) q)))
(check-sat)  ; expect: unsat
(pop)

; Wrong regions are refuted, each with sizes and a g that show it.
(push)
(echo "wrong: the scale 1/(r+c)")
(assert (= d (to_real (* r c))))
(assert (not (= d 0.0)))
(declare-const wrong Real)
(assert (= (* wrong (to_real (+ r c))) 1.0))
(assert (not (= (e r c wrong) q)))
(check-sat)  ; expect: sat
(get-value (r c g))
(pop)

(push)
(echo "wrong: the sides swapped, [c,1] @ g @ [1,r]: another shape")
(assert (not (fits c 1 1 1 1 r)))
(check-sat)  ; expect: sat
(get-value (r c))
(pop)

(push)
(echo "wrong: the sides swapped: an element that is not there")
(assert (= d 1.0))
(assert (not (= (e c r 1.0) g)))
(check-sat)  ; expect: sat
(get-value (r c i j))
(pop)

(push)
(echo "wrong: clause 4 dropped, g : [1,n]: the inner sizes n and 1 may differ")
(declare-const n Int)
(assert (> n 0))
(assert (not (fits r 1 1 n 1 c)))
(check-sat)  ; expect: sat
(get-value (n))
(pop)
