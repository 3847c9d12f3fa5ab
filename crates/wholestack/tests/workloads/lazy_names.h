/* A thousand names. */
#define T1(m, h) m(h##0) m(h##1) m(h##2) m(h##3) m(h##4) m(h##5) m(h##6) m(h##7) m(h##8) m(h##9)
#define T2(m, h) T1(m, h##0) T1(m, h##1) T1(m, h##2) T1(m, h##3) T1(m, h##4) T1(m, h##5) T1(m, h##6) T1(m, h##7) T1(m, h##8) T1(m, h##9)
#define NAMES(m) T2(m, 0) T2(m, 1) T2(m, 2) T2(m, 3) T2(m, 4) T2(m, 5) T2(m, 6) T2(m, 7) T2(m, 8) T2(m, 9)
