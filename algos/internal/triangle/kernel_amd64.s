//go:build !purego

#include "textflag.h"

// Products and sums are separate instructions: a fused multiply-add would give
// other bits than the Go kernels. A vector holds four outputs, never four terms
// of one sum, so that each output sums in the order of kernel_generic.go. For sums
// along rows four columns of four rows are transposed.

// COLUMNS adds the products of four columns with four entries of x to the sums of four rows.
// The rows are in Y0 to Y3.
#define COLUMNS(sums) \
	VUNPCKLPD    Y1, Y0, Y4       \
	VUNPCKHPD    Y1, Y0, Y5       \
	VUNPCKLPD    Y3, Y2, Y6       \
	VUNPCKHPD    Y3, Y2, Y7       \
	VPERM2F128   $0x20, Y6, Y4, Y0 \
	VPERM2F128   $0x20, Y7, Y5, Y1 \
	VPERM2F128   $0x31, Y6, Y4, Y2 \
	VPERM2F128   $0x31, Y7, Y5, Y3 \
	VBROADCASTSD (SI)(DX*8), Y4   \
	VBROADCASTSD 8(SI)(DX*8), Y5  \
	VBROADCASTSD 16(SI)(DX*8), Y6 \
	VBROADCASTSD 24(SI)(DX*8), Y7 \
	VMULPD       Y4, Y0, Y0       \
	VMULPD       Y5, Y1, Y1       \
	VMULPD       Y6, Y2, Y2       \
	VMULPD       Y7, Y3, Y3       \
	VADDPD       Y0, sums, sums   \
	VADDPD       Y1, sums, sums   \
	VADDPD       Y2, sums, sums   \
	VADDPD       Y3, sums, sums

// ROWS loads four columns of four rows into Y0 to Y3.
#define ROWS(r0, r1, r2, r3) \
	VMOVUPD (r0)(DX*8), Y0 \
	VMOVUPD (r1)(DX*8), Y1 \
	VMOVUPD (r2)(DX*8), Y2 \
	VMOVUPD (r3)(DX*8), Y3

// BELOW sets Y4 to the products of four rows, in Y0 to Y3, with b0 to b3.
#define BELOW(b0, b1, b2, b3) \
	VMULPD Y0, b0, Y4 \
	VMULPD Y1, b1, Y5 \
	VMULPD Y2, b2, Y6 \
	VMULPD Y3, b3, Y7 \
	VADDPD Y5, Y4, Y4 \
	VADDPD Y7, Y6, Y6 \
	VADDPD Y6, Y4, Y4

// CORNER sets sums to the product of a 4×4 corner with b0 to b3. The corner is symmetric. What it has below the
// diagonal is not stored, and is taken from the columns above.
#define CORNER(at, r0, r1, r2, r3, b0, b1, b2, b3, sums) \
	VMOVUPD    at(r0), Y0          \
	VMOVUPD    at(r1), Y1          \
	VMOVUPD    at(r2), Y2          \
	VMOVUPD    at(r3), Y3          \
	VUNPCKLPD  Y1, Y0, Y4          \
	VUNPCKHPD  Y1, Y0, Y5          \
	VUNPCKLPD  Y3, Y2, Y6          \
	VUNPCKHPD  Y3, Y2, Y7          \
	VPERM2F128 $0x31, Y6, Y4, Y6   \
	VPERM2F128 $0x31, Y7, Y5, Y7   \
	VBLENDPD   $1, Y5, Y1, Y1      \
	VBLENDPD   $3, Y6, Y2, Y2      \
	VMULPD     b0, Y0, sums        \
	VMULPD     b1, Y1, Y1          \
	VMULPD     b2, Y2, Y2          \
	VMULPD     b3, Y7, Y7          \
	VADDPD     Y1, sums, sums      \
	VADDPD     Y2, sums, sums      \
	VADDPD     Y7, sums, sums

// COLUMN is ROWS, COLUMNS and BELOW for one column; four entries of x are at by.
#define COLUMN(r0, r1, r2, r3, by, sums) \
	VMOVSD       (r0)(DX*8), X0     \
	VMOVHPD      (r1)(DX*8), X0, X0 \
	VMOVSD       (r2)(DX*8), X1     \
	VMOVHPD      (r3)(DX*8), X1, X1 \
	VINSERTF128  $1, X1, Y0, Y0     \
	VBROADCASTSD (SI)(DX*8), Y1     \
	VMULPD       Y0, Y1, Y1         \
	VADDPD       Y1, sums, sums     \
	VMULPD       by(SI), Y0, Y0     \
	VHADDPD      Y0, Y0, Y0         \
	VEXTRACTF128 $1, Y0, X1         \
	VADDSD       X1, X0, X0         \
	VADDSD       (BX)(DX*8), X0, X0 \
	VMOVSD       X0, (BX)(DX*8)

// func mulVecAVX(y, a, x *float64, n, least int)
//
// It goes on while there are more than least rows, which is at least 3. Eight rows are taken at once where they are long: their two vectors of
// sums take turns, because an addition waits for the one before it. Row k begins with column k; the
// registers point to where its column 0 would be.
TEXT ·mulVecAVX(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), BX
	MOVQ a+8(FP), R8
	MOVQ x+16(FP), SI
	MOVQ n+24(FP), CX

rows:
	CMPQ         CX, least+32(FP)
	JLE          done
	LEAQ         -8(R8)(CX*8), R9
	LEAQ         -16(R9)(CX*8), R10
	LEAQ         -24(R10)(CX*8), R11
	VBROADCASTSD 0(SI), Y8
	VBROADCASTSD 8(SI), Y9
	VBROADCASTSD 16(SI), Y10
	VBROADCASTSD 24(SI), Y11
	CORNER(0, R8, R9, R10, R11, Y8, Y9, Y10, Y11, Y12)
	MOVQ         $4, DX
	CMPQ         CX, $12
	JLT          four
	LEAQ         -32(R11)(CX*8), R12
	LEAQ         -40(R12)(CX*8), R13
	LEAQ         -48(R13)(CX*8), DI
	LEAQ         -56(DI)(CX*8), AX

	// Columns 4 to 7 are below the first four rows alone.
	ROWS(R8, R9, R10, R11)
	BELOW(Y8, Y9, Y10, Y11)
	VADDPD       32(BX), Y4, Y14
	COLUMNS(Y12)
	VBROADCASTSD 32(SI), Y8
	VBROADCASTSD 40(SI), Y9
	VBROADCASTSD 48(SI), Y10
	VBROADCASTSD 56(SI), Y11
	CORNER(32, R12, R13, DI, AX, Y8, Y9, Y10, Y11, Y13)
	MOVQ         $8, DX
	SUBQ         $4, CX

both:
	ROWS(R8, R9, R10, R11)
	VBROADCASTSD 0(SI), Y4
	VBROADCASTSD 8(SI), Y5
	VBROADCASTSD 16(SI), Y6
	VBROADCASTSD 24(SI), Y7
	BELOW(Y4, Y5, Y6, Y7)
	VADDPD       (BX)(DX*8), Y4, Y15
	COLUMNS(Y12)
	ROWS(R12, R13, DI, AX)
	BELOW(Y8, Y9, Y10, Y11)
	VADDPD       Y15, Y4, Y4
	VMOVUPD      Y4, (BX)(DX*8)
	COLUMNS(Y13)
	ADDQ         $4, DX
	CMPQ         DX, CX
	JLE          both
	ADDQ         $4, CX
	CMPQ         DX, CX
	JGE          added

single:
	COLUMN(R8, R9, R10, R11, 0, Y12)
	COLUMN(R12, R13, DI, AX, 32, Y13)
	INCQ DX
	CMPQ DX, CX
	JLT  single

added:
	VADDPD  (BX), Y12, Y12
	VMOVUPD Y12, (BX)
	VADDPD  Y14, Y13, Y13
	VMOVUPD Y13, 32(BX)
	ADDQ    $64, BX
	ADDQ    $64, SI
	LEAQ    (AX)(CX*8), R8
	SUBQ    $8, CX
	JMP     rows

four:
	SUBQ $4, CX
	CMPQ DX, CX
	JGT  rest

block:
	ROWS(R8, R9, R10, R11)
	BELOW(Y8, Y9, Y10, Y11)
	VADDPD  (BX)(DX*8), Y4, Y4
	VMOVUPD Y4, (BX)(DX*8)
	COLUMNS(Y12)
	ADDQ    $4, DX
	CMPQ    DX, CX
	JLE     block

rest:
	ADDQ $4, CX

last:
	CMPQ DX, CX
	JGE  ended
	COLUMN(R8, R9, R10, R11, 0, Y12)
	INCQ DX
	JMP  last

ended:
	VADDPD  (BX), Y12, Y12
	VMOVUPD Y12, (BX)
	ADDQ    $32, BX
	ADDQ    $32, SI
	LEAQ    (R11)(CX*8), R8
	SUBQ    $4, CX
	JMP     rows

done:
	VZEROUPPER
	RET

// func outerAVX(a *float64, by float64, x *float64, n, least int)
//
// It goes on while there are more than least rows.
TEXT ·outerAVX(SB), NOSPLIT, $0-40
	MOVQ         a+0(FP), R8
	VBROADCASTSD by+8(FP), Y0
	MOVQ         x+16(FP), SI
	MOVQ         n+24(FP), CX

row:
	VBROADCASTSD (SI), Y1
	VMULPD       Y0, Y1, Y1
	XORQ         DX, DX
	SUBQ         $8, CX
	JLT          below8

eight:
	VMULPD  (SI)(DX*8), Y1, Y2
	VMULPD  32(SI)(DX*8), Y1, Y3
	VADDPD  (R8)(DX*8), Y2, Y2
	VADDPD  32(R8)(DX*8), Y3, Y3
	VMOVUPD Y2, (R8)(DX*8)
	VMOVUPD Y3, 32(R8)(DX*8)
	ADDQ    $8, DX
	CMPQ    DX, CX
	JLE     eight

below8:
	ADDQ    $8, CX
	TESTQ   $4, CX
	JZ      below4
	VMULPD  (SI)(DX*8), Y1, Y2
	VADDPD  (R8)(DX*8), Y2, Y2
	VMOVUPD Y2, (R8)(DX*8)
	ADDQ    $4, DX

below4:
	TESTQ   $2, CX
	JZ      below2
	VMULPD  (SI)(DX*8), X1, X2
	VADDPD  (R8)(DX*8), X2, X2
	VMOVUPD X2, (R8)(DX*8)
	ADDQ    $2, DX

below2:
	TESTQ  $1, CX
	JZ     next
	VMULSD (SI)(DX*8), X1, X2
	VADDSD (R8)(DX*8), X2, X2
	VMOVSD X2, (R8)(DX*8)

next:
	LEAQ (R8)(CX*8), R8
	ADDQ $8, SI
	DECQ CX
	CMPQ CX, least+32(FP)
	JGT  row
	VZEROUPPER
	RET

// func rankAVX(a, by, v *float64, k, next, rows int)
//
// It adds by[j] times row j of v, of 32 entries, to 32 entries of a row, from the first j to the last, and goes on with
// the next row. The row after that is fetched: it is too far away for the CPU to foresee it.
TEXT ·rankAVX(SB), NOSPLIT, $0-48
	MOVQ a+0(FP), R8
	MOVQ by+8(FP), DI
	MOVQ v+16(FP), R9
	MOVQ k+24(FP), R10
	MOVQ next+32(FP), R11
	MOVQ rows+40(FP), R12

row:
	LEAQ       (R8)(R11*8), AX
	LEAQ       -8(AX)(R11*8), BX
	PREFETCHT0 0(BX)
	PREFETCHT0 64(BX)
	PREFETCHT0 128(BX)
	PREFETCHT0 192(BX)
	PREFETCHT0 248(BX)
	MOVQ       R9, SI
	MOVQ       R10, CX
	VMOVUPD    0(R8), Y0
	VMOVUPD    32(R8), Y1
	VMOVUPD    64(R8), Y2
	VMOVUPD    96(R8), Y3
	VMOVUPD    128(R8), Y4
	VMOVUPD    160(R8), Y5
	VMOVUPD    192(R8), Y6
	VMOVUPD    224(R8), Y7

rank:
	VBROADCASTSD (DI), Y8
	VMULPD       0(SI), Y8, Y9
	VMULPD       32(SI), Y8, Y10
	VMULPD       64(SI), Y8, Y11
	VMULPD       96(SI), Y8, Y12
	VADDPD       Y9, Y0, Y0
	VADDPD       Y10, Y1, Y1
	VADDPD       Y11, Y2, Y2
	VADDPD       Y12, Y3, Y3
	VMULPD       128(SI), Y8, Y9
	VMULPD       160(SI), Y8, Y10
	VMULPD       192(SI), Y8, Y11
	VMULPD       224(SI), Y8, Y12
	VADDPD       Y9, Y4, Y4
	VADDPD       Y10, Y5, Y5
	VADDPD       Y11, Y6, Y6
	VADDPD       Y12, Y7, Y7
	ADDQ         $8, DI
	ADDQ         $256, SI
	DECQ         CX
	JNZ          rank

	VMOVUPD Y0, 0(R8)
	VMOVUPD Y1, 32(R8)
	VMOVUPD Y2, 64(R8)
	VMOVUPD Y3, 96(R8)
	VMOVUPD Y4, 128(R8)
	VMOVUPD Y5, 160(R8)
	VMOVUPD Y6, 192(R8)
	VMOVUPD Y7, 224(R8)
	MOVQ    AX, R8
	DECQ    R11
	DECQ    R12
	JNZ     row
	VZEROUPPER
	RET

DATA minusZero<>+0(SB)/8, $0x8000000000000000
GLOBL minusZero<>(SB), RODATA|NOPTR, $8

// HALF sets sums to the products of what is above the diagonal of a 4×4 corner with x, and adds the diagonal's
// part of xᵀAx to X14. Y11 holds −0, which changes no sum: it stands for what a row does not sum. The sum of the
// last row begins with +0, as it does in Go.
#define HALF(at, r0, r1, r2, r3, sums) \
	VMOVUPD      at(r0), Y0        \
	VMOVUPD      at(r1), Y1        \
	VMOVUPD      at(r2), Y2        \
	VMOVUPD      at(r3), Y3        \
	VBLENDPD     $2, Y1, Y0, Y4    \
	VBLENDPD     $4, Y2, Y4, Y4    \
	VBLENDPD     $8, Y3, Y4, Y4    \
	VMOVUPD      at(SI), Y5        \
	VMULPD       Y5, Y5, Y5        \
	VMULPD       Y5, Y4, Y4        \
	VUNPCKHPD    X4, X4, X5        \
	VEXTRACTF128 $1, Y4, X6        \
	VADDSD       X5, X4, X4        \
	VADDSD       X6, X4, X4        \
	VUNPCKHPD    X6, X6, X6        \
	VADDSD       X6, X4, X4        \
	VADDSD       X4, X14, X14      \
	VUNPCKLPD    Y1, Y0, Y4        \
	VUNPCKHPD    Y1, Y0, Y5        \
	VUNPCKLPD    Y3, Y2, Y6        \
	VUNPCKHPD    Y3, Y2, Y7        \
	VPERM2F128   $0x31, Y6, Y4, Y6 \
	VPERM2F128   $0x31, Y7, Y5, Y7 \
	VBROADCASTSD 8+at(SI), Y8      \
	VBROADCASTSD 16+at(SI), Y9     \
	VBROADCASTSD 24+at(SI), Y10    \
	VMULPD       Y8, Y5, Y5        \
	VMULPD       Y9, Y6, Y6        \
	VMULPD       Y10, Y7, Y7       \
	VXORPD       Y8, Y8, Y8        \
	VBLENDPD     $1, Y5, Y11, Y5   \
	VBLENDPD     $3, Y6, Y11, Y6   \
	VBLENDPD     $7, Y7, Y8, Y7    \
	VADDPD       Y6, Y5, sums      \
	VADDPD       Y7, sums, sums

// SINGLE adds the product of one column with its entry of x to the sums of four rows.
#define SINGLE(r0, r1, r2, r3, sums) \
	VMOVSD       (r0)(DX*8), X0     \
	VMOVHPD      (r1)(DX*8), X0, X0 \
	VMOVSD       (r2)(DX*8), X1     \
	VMOVHPD      (r3)(DX*8), X1, X1 \
	VINSERTF128  $1, X1, Y0, Y0     \
	VBROADCASTSD (SI)(DX*8), Y1     \
	VMULPD       Y0, Y1, Y1         \
	VADDPD       Y1, sums, sums

// REST adds the product of the sums of four rows with their entries of x to X15.
#define REST(at, sums) \
	VMULPD       at(SI), sums, Y0 \
	VHADDPD      Y0, Y0, Y0       \
	VEXTRACTF128 $1, Y0, X1       \
	VADDSD       X1, X0, X0       \
	VADDSD       X0, X15, X15

// func quadraticAVX(parts *[2]float64, a, x *float64, n, least int)
//
// It goes through the matrix as mulVecAVX does.
TEXT ·quadraticAVX(SB), NOSPLIT, $0-40
	MOVQ         parts+0(FP), DI
	VMOVSD       0(DI), X14
	VMOVSD       8(DI), X15
	MOVQ         a+8(FP), R8
	MOVQ         x+16(FP), SI
	MOVQ         n+24(FP), CX
	VBROADCASTSD minusZero<>(SB), Y11

rows:
	CMPQ CX, least+32(FP)
	JLE  done
	LEAQ -8(R8)(CX*8), R9
	LEAQ -16(R9)(CX*8), R10
	LEAQ -24(R10)(CX*8), R11
	HALF(0, R8, R9, R10, R11, Y12)
	MOVQ $4, DX
	CMPQ CX, $12
	JLT  four
	LEAQ -32(R11)(CX*8), R12
	LEAQ -40(R12)(CX*8), R13
	LEAQ -48(R13)(CX*8), DI
	LEAQ -56(DI)(CX*8), AX

	// Columns 4 to 7 are beside the first four rows alone.
	ROWS(R8, R9, R10, R11)
	COLUMNS(Y12)
	HALF(32, R12, R13, DI, AX, Y13)
	MOVQ $8, DX
	SUBQ $4, CX

both:
	ROWS(R8, R9, R10, R11)
	COLUMNS(Y12)
	ROWS(R12, R13, DI, AX)
	COLUMNS(Y13)
	ADDQ $4, DX
	CMPQ DX, CX
	JLE  both
	ADDQ $4, CX
	CMPQ DX, CX
	JGE  summed

single:
	SINGLE(R8, R9, R10, R11, Y12)
	SINGLE(R12, R13, DI, AX, Y13)
	INCQ DX
	CMPQ DX, CX
	JLT  single

summed:
	REST(0, Y12)
	REST(32, Y13)
	ADDQ $64, SI
	LEAQ (AX)(CX*8), R8
	SUBQ $8, CX
	JMP  rows

four:
	SUBQ $4, CX
	CMPQ DX, CX
	JGT  rest

block:
	ROWS(R8, R9, R10, R11)
	COLUMNS(Y12)
	ADDQ $4, DX
	CMPQ DX, CX
	JLE  block

rest:
	ADDQ $4, CX

last:
	CMPQ DX, CX
	JGE  ended
	SINGLE(R8, R9, R10, R11, Y12)
	INCQ DX
	JMP  last

ended:
	REST(0, Y12)
	ADDQ $32, SI
	LEAQ (R11)(CX*8), R8
	SUBQ $4, CX
	JMP  rows

done:
	MOVQ   parts+0(FP), DI
	VMOVSD X14, 0(DI)
	VMOVSD X15, 8(DI)
	VZEROUPPER
	RET
