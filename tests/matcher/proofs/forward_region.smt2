; expand_mean, for every r and c > 0:
;
;   m = mean(x : [r,c], both axes)      s = x @ ones[c,1]                  : [r,1]
;                                       e = (ones[1,r] @ s) * (1/(r*c))    : [1,1]
;
; The sum of a rectangle is the one function of r and c that is 0 where r or c is 0, grows by the sum
; of the added row, and grows by the sum of the added column. The product ones @ (x @ ones) is shown
; to have these properties, each by induction; every step is for any r and c.
(set-logic ALL)
(declare-const r Int)
(declare-const c Int)
(assert (and (>= r 0) (>= c 0)))
(declare-fun x (Int Int) Real)
(declare-fun outside (Int Int Int) Real)
(define-fun ones ((tensor Int) (rows Int) (columns Int) (i Int) (j Int)) Real
  (ite (and (<= 0 i) (< i rows) (<= 0 j) (< j columns)) 1.0 (outside tensor i j)))

; What is to be summed: (row i n) is the sum of x(i,0..n-1), (column n j) of x(0..n-1,j).
(declare-fun row (Int Int) Real)
(declare-fun column (Int Int) Real)
(define-fun row-begins ((i Int)) Bool (= (row i 0) 0.0))
(define-fun row-grows ((i Int) (n Int)) Bool (= (row i (+ n 1)) (+ (row i n) (x i n))))
(define-fun column-begins ((j Int)) Bool (= (column 0 j) 0.0))
(define-fun column-grows ((n Int) (j Int)) Bool
  (= (column (+ n 1) j) (+ (column n j) (x n j))))

; The region: (s i n) is element (i,0) of x @ ones[n,1], by the first n terms of its product;
; (total m n) is element (0,0) of ones[1,m] @ s. The ones of a longer product begin like those of a
; shorter one, so the sizes below are the final ones wherever they are read.
(declare-fun s (Int Int) Real)
(declare-fun total (Int Int) Real)
(define-fun s-begins ((i Int)) Bool (= (s i 0) 0.0))
(define-fun s-grows ((i Int) (n Int)) Bool
  (= (s i (+ n 1)) (+ (s i n) (* (x i n) (ones 1 (+ n 1) 1 n 0)))))
(define-fun total-begins ((n Int)) Bool (= (total 0 n) 0.0))
(define-fun total-grows ((m Int) (n Int)) Bool
  (= (total (+ m 1) n) (+ (total m n) (* (ones 2 1 (+ m 1) 0 m) (s m n)))))

; Do the inner sizes of left @ (x @ right) agree, and is the result [1,1]?
(define-fun fits ((left_rows Int) (left_columns Int) (right_rows Int) (right_columns Int)) Bool
  (and (= left_columns r) (= c right_rows) (= left_rows 1) (= right_columns 1)))

(push)
(echo "[1,r] @ ([r,c] @ [c,1]): the inner sizes agree, the shape is [1,1]")
(assert (not (fits 1 r c 1)))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "ones of a longer product begin like those of a shorter one")
(declare-const k Int)
(declare-const longer Int)
(assert (and (<= 0 k) (< k c) (<= c longer)))
(assert (not (and (= (ones 1 c 1 k 0) (ones 1 longer 1 k 0))
                  (= (ones 2 1 c 0 k) (ones 2 1 longer 0 k)))))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "row sums, no column: s(i,0) = row(i,0)")
(assert (and (s-begins r) (row-begins r)))
(assert (not (= (s r 0) (row r 0))))
(check-sat)  ; expect: unsat
(pop)
(push)
(echo "row sums, one more column: s(i,c) = row(i,c) gives s(i,c+1) = row(i,c+1)")
(assert (and (s-grows r c) (row-grows r c)))
(assert (= (s r c) (row r c)))
(assert (not (= (s r (+ c 1)) (row r (+ c 1)))))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "no row: total(0,c) = 0")
(assert (total-begins c))
(assert (not (= (total 0 c) 0.0)))
(check-sat)  ; expect: unsat
(pop)
(push)
(echo "no column, one more row: total(r,0) = 0 gives total(r+1,0) = 0")
(assert (and (total-grows r 0) (s-begins r) (= (total r 0) 0.0)))
(assert (not (= (total (+ r 1) 0) 0.0)))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "one added row: total(r+1,c) = total(r,c) + row(r,c)")
(assert (and (total-grows r c) (= (s r c) (row r c))))
(assert (not (= (total (+ r 1) c) (+ (total r c) (row r c)))))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "one added column, no row: total(0,c+1) = total(0,c) + column(0,c)")
(assert (and (total-begins c) (total-begins (+ c 1)) (column-begins c)))
(assert (not (= (total 0 (+ c 1)) (+ (total 0 c) (column 0 c)))))
(check-sat)  ; expect: unsat
(pop)
(push)
(echo "one added column, one more row: what holds for r rows holds for r+1")
(assert (and (total-grows r c) (total-grows r (+ c 1)) (s-grows r c) (column-grows r c)))
(assert (= (total r (+ c 1)) (+ (total r c) (column r c))))
(assert (not (= (total (+ r 1) (+ c 1)) (+ (total (+ r 1) c) (column (+ r 1) c)))))
(check-sat)  ; expect: unsat
(pop)

(push)
(echo "all that the steps assume holds together for some x that is not zero")
(assert (and (= r 2) (= c 3) (= (x 2 3) 1.0)))
(assert (and (row-begins r) (row-grows r c) (= (s r c) (row r c))))
(assert (and (s-begins r) (s-grows r c)))
(assert (and (column-begins c) (column-grows r c)))
(assert (and (total-begins c) (total-begins (+ c 1)) (total-grows r c) (total-grows r (+ c 1))))
(assert (and (total-grows r 0) (= (total r 0) 0.0)))
(assert (= (total r (+ c 1)) (+ (total r c) (column r c))))
(check-sat)  ; expect: sat
(pop)

; The scale, on a sum that is right.
(declare-const sum Real)
(declare-const mean Real)
(declare-const inverse Real)
(assert (= (* mean (to_real (* r c))) sum))
(push)
(echo "sum * 1/(r*c) is the mean")
(assert (and (> r 0) (> c 0) (= (* inverse (to_real (* r c))) 1.0)))
(assert (not (= (* sum inverse) mean)))
(check-sat)  ; expect: unsat
(pop)

; Wrong regions are refuted.
(push)
(echo "wrong: the scale 1/(r+c)")
(assert (and (> r 0) (> c 0) (= (* inverse (to_real (+ r c))) 1.0)))
(assert (not (= (* sum inverse) mean)))
(check-sat)  ; expect: sat
(get-value (r c sum mean))
(pop)
(push)
(echo "wrong: the sides swapped, [1,c] @ ([r,c] @ [r,1]): the inner sizes differ")
(assert (and (> r 0) (> c 0) (not (fits 1 c r 1))))
(check-sat)  ; expect: sat
(get-value (r c))
(pop)
(push)
(echo "wrong: the sides swapped: the last column of x meets an element that is not there")
(assert (and (> r 0) (> c 0)))
(assert (not (= (* (x 0 (- c 1)) (ones 1 r 1 (- c 1) 0)) (x 0 (- c 1)))))
(check-sat)  ; expect: sat
(get-value (r c))
(pop)
