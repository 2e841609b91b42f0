//go:build !purego

#include "textflag.h"

// Products and sums are separate instructions, in the order of the loops in Go. Four sums stand side by side in a
// register, as lanes has them, and no two of them ever meet, so the bits are those of Go.

// PAIR gives the offset of a feature's pair.
#define PAIR(at, to) \
	MOVL  at(SI), to \
	ANDQ  R13, to    \
	IMULQ R10, to

// PAIRS loads the pairs of four features: the a of each into A, the b into B.
#define PAIRS(A, B, T) \
	PAIR(0, AX)                     \
	PAIR(4, BX)                     \
	PAIR(8, DX)                     \
	PAIR(12, DI)                    \
	VMOVSD  (R9)(AX*1), A           \
	VMOVHPS (R9)(BX*1), A, A        \
	VMOVSD  (R9)(DX*1), T           \
	VMOVHPS (R9)(DI*1), T, T        \
	VSHUFPS $0xdd, T, A, B          \
	VSHUFPS $0x88, T, A, A

// func bayesTerms(sums *evidenceLanes, pairs *pair, size, mask int, index *uint32, n int, k *constants,
//	centres *[128]logistic.Centre, standardised bool) (places uint64)
//
// Four features at a time. n is a multiple of four.
TEXT ·bayesTerms(SB), NOSPLIT, $0-80
	MOVQ    sums+0(FP), R15
	MOVQ    pairs+8(FP), R9
	MOVQ    size+16(FP), R10
	MOVQ    mask+24(FP), R13
	MOVQ    index+32(FP), SI
	MOVQ    n+40(FP), CX
	MOVQ    k+48(FP), R8
	MOVQ    centres+56(FP), R11
	MOVBQZX standardised+64(FP), R12
	VMOVUPD (R15), Y11   // Σr
	VMOVUPD 32(R15), Y12 // Σr²
	VMOVUPD 64(R15), Y13 // Σr³
	VMOVUPD 96(R15), Y14 // Σz
	VPXOR   Y15, Y15, Y15 // places

four:
	PAIRS(X0, X1, X2)
	VCVTPS2PD X0, Y0            // a
	VCVTPS2PD X1, Y1            // b
	VADDPD    Y1, Y0, Y2        // a+b
	VADDPD    (R8), Y2, Y3      // a+b+½
	VPSRLQ    $32, Y3, Y4
	VPADDQ    Y4, Y15, Y15
	VMULPD    32(R8), Y2, Y4    // toward
	VADDPD    Y4, Y1, Y5
	VADDPD    Y4, Y0, Y4
	VDIVPD    Y4, Y5, Y5        // (b+toward)/(a+toward)

	// QuickLog
	VPSRLQ       $52, Y5, Y6
	VEXTRACTI128 $1, Y6, X7
	VSHUFPS      $0x88, X7, X6, X6
	VCVTDQ2PD    X6, Y6
	VSUBPD       64(R8), Y6, Y6    // k
	VPSRLQ       $45, Y5, Y7
	VEXTRACTI128 $1, Y7, X8
	VMOVQ        X7, AX
	VPEXTRQ      $1, X7, BX
	VMOVQ        X8, DX
	VPEXTRQ      $1, X8, DI
	ANDQ         $127, AX
	ANDQ         $127, BX
	ANDQ         $127, DX
	ANDQ         $127, DI
	SHLQ         $4, AX
	SHLQ         $4, BX
	SHLQ         $4, DX
	SHLQ         $4, DI
	VMOVUPD      (R11)(AX*1), X7
	VINSERTF128  $1, (R11)(DX*1), Y7, Y7
	VMOVUPD      (R11)(BX*1), X8
	VINSERTF128  $1, (R11)(DI*1), Y8, Y8
	VUNPCKHPD    Y8, Y7, Y9        // ln c
	VUNPCKLPD    Y8, Y7, Y7        // 1/c
	VANDPD       480(R8), Y5, Y5
	VORPD        96(R8), Y5, Y5
	VMULPD       Y7, Y5, Y5
	VSUBPD       96(R8), Y5, Y5    // f
	VMULPD       128(R8), Y5, Y7   // f/4
	VMOVUPD      160(R8), Y8
	VSUBPD       Y7, Y8, Y8
	VMULPD       Y5, Y8, Y8
	VMOVUPD      (R8), Y7
	VSUBPD       Y8, Y7, Y7
	VMULPD       Y5, Y5, Y8
	VMULPD       Y8, Y7, Y7
	VSUBPD       Y7, Y5, Y5        // the series
	VADDPD       Y5, Y9, Y5
	VMULPD       192(R8), Y6, Y6
	VADDPD       Y5, Y6, Y5
	VADDPD       224(R8), Y5, Y5
	VXORPD       Y7, Y7, Y7
	VCMPPD       $4, Y7, Y2, Y10   // the features that some message had
	VANDPD       Y10, Y5, Y5       // r
	VADDPD       Y5, Y11, Y11
	VMULPD       Y5, Y5, Y6
	VADDPD       Y6, Y12, Y12
	VMULPD       Y5, Y6, Y6
	VADDPD       Y6, Y13, Y13

	TESTQ   R12, R12
	JZ      next
	VMULPD  256(R8), Y3, Y3  // p
	VMOVUPD 96(R8), Y4
	VSUBPD  Y3, Y4, Y4
	VMULPD  Y3, Y4, Y4       // p(1-p)
	VMAXPD  288(R8), Y4, Y4
	VMULPD  320(R8), Y4, Y4
	VSQRTPD Y4, Y4
	VMULPD  352(R8), Y1, Y1
	VMULPD  384(R8), Y0, Y0
	VSUBPD  Y0, Y1, Y1
	VDIVPD  Y4, Y1, Y1
	VMINPD  416(R8), Y1, Y1
	VMAXPD  448(R8), Y1, Y1
	VANDPD  Y10, Y1, Y1      // z
	VADDPD  Y1, Y14, Y14

next:
	ADDQ $16, SI
	SUBQ $4, CX
	JG   four

	VMOVUPD      Y11, (R15)
	VMOVUPD      Y12, 32(R15)
	VMOVUPD      Y13, 64(R15)
	VMOVUPD      Y14, 96(R15)
	VEXTRACTI128 $1, Y15, X0
	VPADDQ       X0, X15, X0
	VMOVQ        X0, AX
	VPEXTRQ      $1, X0, DX
	ADDQ         DX, AX
	MOVQ         AX, places+72(FP)
	VZEROUPPER
	RET

// func adaSums(sums *lanes, pairs *pair, size, mask int, index *uint32, n int) (seen uint64)
//
// Four features at a time. n is a multiple of four.
TEXT ·adaSums(SB), NOSPLIT, $0-56
	MOVQ    sums+0(FP), R15
	MOVQ    pairs+8(FP), R9
	MOVQ    size+16(FP), R10
	MOVQ    mask+24(FP), R13
	MOVQ    index+32(FP), SI
	MOVQ    n+40(FP), CX
	VMOVUPD (R15), Y4
	VPXOR   X5, X5, X5 // minus what was seen
	VXORPS  X6, X6, X6

weights:
	PAIRS(X0, X1, X2)
	VCVTPS2PD X0, Y0
	VADDPD    Y0, Y4, Y4
	VPCMPGTD  X6, X1, X1 // G > 0, and so are its bits
	VPADDD    X1, X5, X5
	ADDQ      $16, SI
	SUBQ      $4, CX
	JG        weights

	VMOVUPD Y4, (R15)
	VPSHUFD $0x4e, X5, X0
	VPADDD  X0, X5, X5
	VPSHUFD $0xb1, X5, X0
	VPADDD  X0, X5, X5
	VMOVD   X5, AX
	NEGL    AX
	MOVQ    AX, seen+48(FP)
	VZEROUPPER
	RET

// BLEND replaces up in Y5 and down in Y6 by those of a longer string: g are its counts with the byte, before those
// without.
#define BLEND(before, g) \
	VMAXPD before, g, Y7 \
	VADDPD Y14, Y7, Y7   \
	VMULPD Y6, g, Y15    \
	VADDPD Y5, Y5, Y5    \
	VADDPD Y15, Y5, Y5   \
	VMULPD Y7, Y6, Y6

// COUNTS loads the counts of a string of the first and of the second byte: ham, spam, ham, spam.
#define COUNTS(at, to, low) \
	MOVL      at(BX), AX          \
	MOVL      at+16(BX), DX       \
	ANDQ      R13, AX             \
	ANDQ      R13, DX             \
	IMULQ     R10, AX             \
	IMULQ     R10, DX             \
	VMOVSD    (R9)(AX*1), low     \
	VMOVHPS   (R9)(DX*1), low, low \
	VCVTPS2PD low, to

// func byteRatios(to *float64, text *byte, n int, index *uint32, single *[256][2]float64, pairs *pair, size, mask int,
//	before *byteCounts, prior *[2]float64)
//
// Two bytes at a time. n is even.
TEXT ·byteRatios(SB), NOSPLIT, $0-80
	MOVQ           to+0(FP), DI
	MOVQ           text+8(FP), SI
	MOVQ           n+16(FP), CX
	MOVQ           index+24(FP), BX
	MOVQ           single+32(FP), R8
	MOVQ           pairs+40(FP), R9
	MOVQ           size+48(FP), R10
	MOVQ           mask+56(FP), R13
	MOVQ           before+64(FP), R11
	MOVQ           prior+72(FP), R12
	VINSERTF128    $1, (R11), Y8, Y8     // the counts at the byte before, in the upper halves
	VINSERTF128    $1, 16(R11), Y9, Y9
	VINSERTF128    $1, 32(R11), Y10, Y10
	VINSERTF128    $1, 48(R11), Y11, Y11
	VBROADCASTF128 (R12), Y12
	MOVQ           $0x3fe0000000000000, AX
	VMOVQ          AX, X13
	VPBROADCASTQ   X13, Y13              // ½
	MOVQ           $0x4000000000000000, AX
	VMOVQ          AX, X14
	VPBROADCASTQ   X14, Y14              // 2

two:
	MOVBLZX     (SI), AX
	MOVBLZX     1(SI), DX
	SHLQ        $4, AX
	SHLQ        $4, DX
	VMOVUPD     (R8)(AX*1), X0
	VINSERTF128 $1, (R8)(DX*1), Y0, Y0
	COUNTS(0, Y1, X1)
	COUNTS(4, Y2, X2)
	COUNTS(8, Y3, X3)
	COUNTS(12, Y4, X4)
	VADDPD      Y13, Y0, Y5
	VMOVAPD     Y12, Y6
	VPERM2F128  $0x21, Y0, Y8, Y7        // the byte before each
	BLEND(Y7, Y1)
	VPERM2F128  $0x21, Y1, Y9, Y7
	BLEND(Y7, Y2)
	VPERM2F128  $0x21, Y2, Y10, Y7
	BLEND(Y7, Y3)
	VPERM2F128  $0x21, Y3, Y11, Y7
	BLEND(Y7, Y4)
	VPERMILPD   $5, Y6, Y6
	VMULPD      Y6, Y5, Y5               // ham up · spam down, spam up · ham down
	VEXTRACTF128 $1, Y5, X6
	VUNPCKHPD   X6, X5, X7
	VUNPCKLPD   X6, X5, X5
	VDIVPD      X5, X7, X5
	VMINPD      most<>(SB), X5, X5
	VMAXPD      least<>(SB), X5, X5
	VMOVUPD     X5, (DI)
	VMOVAPD     Y0, Y8
	VMOVAPD     Y1, Y9
	VMOVAPD     Y2, Y10
	VMOVAPD     Y3, Y11
	ADDQ        $2, SI
	ADDQ        $32, BX
	ADDQ        $16, DI
	SUBQ        $2, CX
	JG          two

	VEXTRACTF128 $1, Y8, 0(R11)
	VEXTRACTF128 $1, Y9, 16(R11)
	VEXTRACTF128 $1, Y10, 32(R11)
	VEXTRACTF128 $1, Y11, 48(R11)
	VZEROUPPER
	RET

// func roundedCounts(counts *float32, size, mask int, index *uint32, n int, ω float64, seed uint32)
//
// Four counts at a time: all are read before one is written. n is a multiple of four.
TEXT ·roundedCounts(SB), NOSPLIT, $0-52
	MOVQ         counts+0(FP), R9
	MOVQ         size+8(FP), R10
	MOVQ         mask+16(FP), R13
	MOVQ         index+24(FP), SI
	MOVQ         n+32(FP), CX
	VBROADCASTSD ω+40(FP), Y15
	MOVL         seed+48(FP), AX
	VMOVD        AX, X14
	VPBROADCASTD X14, X14
	VPADDD       turns<>(SB), X14, X14
	VPBROADCASTD fours<>(SB), X13
	VPBROADCASTD first<>(SB), X12
	VPBROADCASTD second<>(SB), X11
	VPBROADCASTQ lacks<>(SB), Y10
	VXORPD       Y9, Y9, Y9

counts:
	PAIR(0, AX)
	PAIR(4, BX)
	PAIR(8, DX)
	PAIR(12, DI)
	VMOVSS       (R9)(AX*1), X0
	VINSERTPS    $0x10, (R9)(BX*1), X0, X0
	VINSERTPS    $0x20, (R9)(DX*1), X0, X0
	VINSERTPS    $0x30, (R9)(DI*1), X0, X0
	VCVTPS2PD    X0, Y0
	VADDPD       Y15, Y0, Y0
	VMAXPD       Y9, Y0, Y0
	VPAND        Y10, Y0, Y1            // the bits that a float32 lacks
	VPXOR        Y1, Y0, Y0
	VCVTPD2PSY   Y0, X0
	VEXTRACTI128 $1, Y1, X2
	VSHUFPS      $0x88, X2, X1, X1
	VPSRLD       $16, X14, X2
	VPXOR        X14, X2, X2
	VPMULLD      X12, X2, X2
	VPSRLD       $13, X2, X3
	VPXOR        X3, X2, X2
	VPMULLD      X11, X2, X2
	VPSRLD       $16, X2, X3
	VPXOR        X3, X2, X2
	VPSRLD       $3, X2, X2             // the draws
	VPADDD       X13, X14, X14
	VPCMPGTD     X2, X1, X1
	VPSUBD       X1, X0, X0             // 1 more where the draw is below
	VMOVSS       X0, (R9)(AX*1)
	VEXTRACTPS   $1, X0, (R9)(BX*1)
	VEXTRACTPS   $2, X0, (R9)(DX*1)
	VEXTRACTPS   $3, X0, (R9)(DI*1)
	ADDQ         $16, SI
	SUBQ         $4, CX
	JG           counts
	VZEROUPPER
	RET

DATA most<>+0(SB)/8, $0x40628d389970338f  // e⁵
DATA most<>+8(SB)/8, $0x40628d389970338f
GLOBL most<>(SB), RODATA|NOPTR, $16
DATA least<>+0(SB)/8, $0x3f7b993fe00d5376 // its inverse
DATA least<>+8(SB)/8, $0x3f7b993fe00d5376
GLOBL least<>(SB), RODATA|NOPTR, $16
DATA turns<>+0(SB)/8, $0x0000000100000000
DATA turns<>+8(SB)/8, $0x0000000300000002
GLOBL turns<>(SB), RODATA|NOPTR, $16
DATA fours<>+0(SB)/4, $4
GLOBL fours<>(SB), RODATA|NOPTR, $4
DATA first<>+0(SB)/4, $0x85ebca6b
GLOBL first<>(SB), RODATA|NOPTR, $4
DATA second<>+0(SB)/4, $0xc2b2ae35
GLOBL second<>(SB), RODATA|NOPTR, $4
DATA lacks<>+0(SB)/8, $0x1fffffff
GLOBL lacks<>(SB), RODATA|NOPTR, $8

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
