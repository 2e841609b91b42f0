//go:build !purego

#include "textflag.h"

// Products and sums are separate instructions, in the order of the loops in Go. No half of a register ever
// meets the other in a sum, so the bits are those of Go.

// func bayesTerms(rs, zs *float64, pairs *pair, size, mask int, index *uint32, n int, k *constants,
//	centres *[128]logistic.Centre, standardised bool) (places uint64)
//
// Two features at a time. n is even.
TEXT ·bayesTerms(SB), NOSPLIT, $0-88
	MOVQ    rs+0(FP), DI
	MOVQ    zs+8(FP), R8
	MOVQ    pairs+16(FP), R9
	MOVQ    size+24(FP), R10
	MOVQ    mask+32(FP), R13
	MOVQ    index+40(FP), SI
	MOVQ    n+48(FP), CX
	MOVQ    k+56(FP), BX
	MOVQ    centres+64(FP), R11
	MOVBQZX standardised+72(FP), R12
	MOVUPS  0(BX), X11   // ½
	MOVUPS  16(BX), X12  // overall
	MOVUPS  48(BX), X13  // 1
	MOVUPS  240(BX), X14 // the bits of a mantissa
	PXOR    X15, X15     // places

two:
	MOVL     0(SI), AX
	ANDQ     R13, AX
	IMULQ    R10, AX
	MOVSD    (R9)(AX*1), X0
	MOVL     4(SI), DX
	ANDQ     R13, DX
	IMULQ    R10, DX
	MOVSD    (R9)(DX*1), X1
	UNPCKLPS X1, X0         // a, a', b, b'
	CVTPS2PD X0, X1         // a
	MOVHLPS  X0, X0
	CVTPS2PD X0, X2         // b
	MOVAPS   X1, X3
	ADDPD    X2, X3         // a+b
	MOVAPS   X3, X4
	ADDPD    X11, X4        // a+b+½
	MOVAPS   X4, X5
	PSRLQ    $32, X5
	PADDQ    X5, X15
	MOVAPS   X12, X5
	MULPD    X3, X5         // toward
	MOVAPS   X2, X6
	ADDPD    X5, X6
	ADDPD    X1, X5
	DIVPD    X5, X6         // (b+toward)/(a+toward)

	// QuickLog
	MOVAPS   X6, X7
	PSRLQ    $52, X7
	PSHUFL   $8, X7, X7
	CVTPL2PD X7, X7
	MOVUPS   32(BX), X8
	SUBPD    X8, X7     // k
	MOVAPS   X6, X8
	PSRLQ    $45, X8
	MOVQ     X8, AX
	MOVHLPS  X8, X8
	MOVQ     X8, DX
	ANDQ     $127, AX
	ANDQ     $127, DX
	SHLQ     $4, AX
	SHLQ     $4, DX
	MOVUPS   (R11)(AX*1), X8
	MOVUPS   (R11)(DX*1), X9
	MOVAPS   X8, X10
	UNPCKLPD X9, X8     // 1/c
	UNPCKHPD X9, X10    // ln c
	PAND     X14, X6
	POR      X13, X6
	MULPD    X8, X6
	SUBPD    X13, X6    // f
	MOVUPS   64(BX), X8
	MULPD    X6, X8     // f/4
	MOVUPS   80(BX), X9
	SUBPD    X8, X9
	MULPD    X6, X9
	MOVAPS   X11, X8
	SUBPD    X9, X8
	MOVAPS   X6, X9
	MULPD    X6, X9
	MULPD    X9, X8
	SUBPD    X8, X6     // the series
	ADDPD    X10, X6
	MOVUPS   96(BX), X8
	MULPD    X8, X7
	ADDPD    X6, X7

	MOVUPS 112(BX), X8
	ADDPD  X8, X7
	XORPS  X8, X8
	CMPPD  X3, X8, $4  // the features that some message had
	ANDPD  X8, X7
	MOVUPS X7, (DI)

	TESTQ  R12, R12
	JZ     next
	MOVUPS 128(BX), X5
	MULPD  X5, X4      // p
	MOVAPS X13, X5
	SUBPD  X4, X5
	MULPD  X4, X5      // p(1-p)
	MOVUPS 144(BX), X6
	MAXPD  X6, X5
	MOVUPS 160(BX), X6
	MULPD  X6, X5
	SQRTPD X5, X5
	MOVUPS 176(BX), X6
	MULPD  X6, X2
	MOVUPS 192(BX), X6
	MULPD  X6, X1
	SUBPD  X1, X2
	DIVPD  X5, X2
	MOVUPS 208(BX), X6
	MINPD  X6, X2
	MOVUPS 224(BX), X6
	MAXPD  X6, X2
	ANDPD  X8, X2
	MOVUPS X2, (R8)

next:
	ADDQ $16, DI
	ADDQ $16, R8
	ADDQ $8, SI
	SUBQ $2, CX
	JG   two

	MOVQ    X15, AX
	MOVHLPS X15, X15
	MOVQ    X15, DX
	ADDQ    DX, AX
	MOVQ    AX, places+80(FP)
	RET

// BLEND replaces up in X5 and down in X6 by those of a longer string: g is its count with the byte, c
// without. Ham is in the low halves, spam in the high ones.
#define BLEND(g, c) \
	MOVAPS c, X7   \
	MAXPD  g, X7   \
	ADDPD  X14, X7 \
	MOVAPS g, X15  \
	MULPD  X6, X15 \
	ADDPD  X5, X5  \
	ADDPD  X15, X5 \
	MULPD  X7, X6

// COUNTS loads the counts of a string.
#define COUNTS(at, to) \
	MOVL     at(BX), AX      \
	ANDQ     R13, AX         \
	IMULQ    R10, AX         \
	CVTPS2PD (R9)(AX*1), to

// func byteRatios(to *float64, text *byte, n int, index *uint32, single *[256][2]float64, pairs *pair, size, mask int,
//	before *byteCounts, prior *[2]float64)
TEXT ·byteRatios(SB), NOSPLIT, $0-80
	MOVQ   to+0(FP), DI
	MOVQ   text+8(FP), SI
	MOVQ   n+16(FP), CX
	MOVQ   index+24(FP), BX
	MOVQ   single+32(FP), R8
	MOVQ   pairs+40(FP), R9
	MOVQ   size+48(FP), R10
	MOVQ   mask+56(FP), R13
	MOVQ   before+64(FP), R11
	MOVQ   prior+72(FP), R12
	MOVUPS 0(R11), X8
	MOVUPS 16(R11), X9
	MOVUPS 32(R11), X10
	MOVUPS 48(R11), X11
	MOVUPS (R12), X12
	MOVQ   $0x3fe0000000000000, AX
	MOVQ   AX, X13
	UNPCKLPD X13, X13               // ½
	MOVQ   $0x4000000000000000, AX
	MOVQ   AX, X14
	UNPCKLPD X14, X14               // 2

byte:
	MOVBLZX (SI), AX
	SHLQ    $4, AX
	MOVUPS  (R8)(AX*1), X0
	COUNTS(0, X1)
	COUNTS(4, X2)
	COUNTS(8, X3)
	COUNTS(12, X4)
	MOVAPS  X0, X5
	ADDPD   X13, X5
	MOVAPS  X12, X6
	BLEND(X1, X8)
	BLEND(X2, X9)
	BLEND(X3, X10)
	BLEND(X4, X11)
	SHUFPD  $1, X6, X6
	MULPD   X6, X5       // ham up · spam down, spam up · ham down
	MOVHLPS X5, X6
	DIVSD   X5, X6
	MOVSD   X6, (DI)
	MOVAPS  X0, X8
	MOVAPS  X1, X9
	MOVAPS  X2, X10
	MOVAPS  X3, X11
	INCQ    SI
	ADDQ    $16, BX
	ADDQ    $8, DI
	DECQ    CX
	JNZ     byte

	MOVUPS X8, 0(R11)
	MOVUPS X9, 16(R11)
	MOVUPS X10, 32(R11)
	MOVUPS X11, 48(R11)
	RET

// PAIR gives the offset of a feature's pair.
#define PAIR(at, to) \
	MOVL  at(SI), to \
	ANDQ  R13, to    \
	IMULQ R10, to

// func adaSteps(pairs *pair, size, mask int, index *uint32, n int, square, steady, length, gain float32)
//
// Four features at a time, which are distinct. n is a multiple of four.
TEXT ·adaSteps(SB), NOSPLIT, $0-56
	MOVQ   pairs+0(FP), R9
	MOVQ   size+8(FP), R10
	MOVQ   mask+16(FP), R13
	MOVQ   index+24(FP), SI
	MOVQ   n+32(FP), CX
	MOVSS  square+40(FP), X8
	SHUFPS $0, X8, X8
	MOVSS  steady+44(FP), X9
	SHUFPS $0, X9, X9
	MOVSS  length+48(FP), X10
	SHUFPS $0, X10, X10
	MOVSS  gain+52(FP), X11
	SHUFPS $0, X11, X11

four:
	PAIR(0, AX)
	PAIR(4, BX)
	PAIR(8, DX)
	PAIR(12, DI)
	MOVSD    (R9)(AX*1), X0
	MOVHPS   (R9)(BX*1), X0
	MOVSD    (R9)(DX*1), X1
	MOVHPS   (R9)(DI*1), X1
	MOVAPS   X0, X2
	SHUFPS   $0x88, X1, X2 // w
	SHUFPS   $0xdd, X1, X0 // G
	MOVAPS   X0, X3
	ADDPS    X8, X3
	ADDPS    X9, X3
	SQRTPS   X3, X3
	MOVAPS   X10, X4
	DIVPS    X3, X4
	SUBPS    X4, X2
	ADDPS    X11, X0
	MOVAPS   X2, X1
	UNPCKLPS X0, X1
	UNPCKHPS X0, X2
	MOVSD    X1, (R9)(AX*1)
	MOVHPS   X1, (R9)(BX*1)
	MOVSD    X2, (R9)(DX*1)
	MOVHPS   X2, (R9)(DI*1)
	ADDQ     $16, SI
	SUBQ     $4, CX
	JG       four
	RET
