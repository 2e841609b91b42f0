//go:build !purego

#include "textflag.h"

// As in kernel_amd64.s, products and sums are separate instructions, and every output sums in the order of
// vectors.go. In a quad the four numbers of a vector belong to four outputs.

// ROW sets sums to the product of a row of the corner with the quads in Y0 to Y3.
#define ROW(at) \
	VBROADCASTSD at(DI), Y4    \
	VBROADCASTSD 8+at(DI), Y5  \
	VBROADCASTSD 16+at(DI), Y6 \
	VBROADCASTSD 24+at(DI), Y7 \
	VMULPD       Y0, Y4, Y4    \
	VMULPD       Y1, Y5, Y5    \
	VMULPD       Y2, Y6, Y6    \
	VMULPD       Y3, Y7, Y7    \
	VADDPD       Y5, Y4, Y4    \
	VADDPD       Y6, Y4, Y4    \
	VADDPD       Y7, Y4, Y4    \
	VMOVUPD      Y4, at(BX)

// func cornerQuadsAVX(s, c, x *[16]float64)
TEXT ·cornerQuadsAVX(SB), NOSPLIT, $0-24
	MOVQ    s+0(FP), BX
	MOVQ    c+8(FP), DI
	MOVQ    x+16(FP), SI
	VMOVUPD 0(SI), Y0
	VMOVUPD 32(SI), Y1
	VMOVUPD 64(SI), Y2
	VMOVUPD 96(SI), Y3
	ROW(0)
	ROW(32)
	ROW(64)
	ROW(96)
	VZEROUPPER
	RET

// COLUMN adds the products of one column of four rows with its quad of x to the sums Y0 to Y3, and those with the
// quads Y4 to Y7 to its quad of y.
#define COLUMN(at, quad) \
	VBROADCASTSD at(R8)(DX*8), Y8   \
	VBROADCASTSD at(R9)(DX*8), Y9   \
	VBROADCASTSD at(R10)(DX*8), Y10 \
	VBROADCASTSD at(R11)(DX*8), Y11 \
	VMOVUPD      quad(SI), Y12      \
	VMULPD       Y12, Y8, Y13       \
	VMULPD       Y12, Y9, Y14       \
	VMULPD       Y12, Y10, Y15      \
	VMULPD       Y12, Y11, Y12      \
	VADDPD       Y13, Y0, Y0        \
	VADDPD       Y14, Y1, Y1        \
	VADDPD       Y15, Y2, Y2        \
	VADDPD       Y12, Y3, Y3        \
	VMULPD       Y4, Y8, Y8         \
	VMULPD       Y5, Y9, Y9         \
	VMULPD       Y6, Y10, Y10       \
	VMULPD       Y7, Y11, Y11       \
	VADDPD       Y9, Y8, Y8         \
	VADDPD       Y11, Y10, Y10      \
	VADDPD       Y10, Y8, Y8        \
	VADDPD       quad(DI), Y8, Y8   \
	VMOVUPD      Y8, quad(DI)

// func bothQuadsAVX(s *[16]float64, y, x *float64, by *[16]float64, r0, r1, r2, r3 *float64, n int)
TEXT ·bothQuadsAVX(SB), NOSPLIT, $0-72
	MOVQ    s+0(FP), BX
	MOVQ    y+8(FP), DI
	MOVQ    x+16(FP), SI
	MOVQ    by+24(FP), AX
	MOVQ    r0+32(FP), R8
	MOVQ    r1+40(FP), R9
	MOVQ    r2+48(FP), R10
	MOVQ    r3+56(FP), R11
	MOVQ    n+64(FP), CX
	VMOVUPD 0(BX), Y0
	VMOVUPD 32(BX), Y1
	VMOVUPD 64(BX), Y2
	VMOVUPD 96(BX), Y3
	VMOVUPD 0(AX), Y4
	VMOVUPD 32(AX), Y5
	VMOVUPD 64(AX), Y6
	VMOVUPD 96(AX), Y7
	XORQ    DX, DX
	SUBQ    $4, CX
	JLT     fewer

four:
	COLUMN(0, 0)
	COLUMN(8, 32)
	COLUMN(16, 64)
	COLUMN(24, 96)
	ADDQ $128, SI
	ADDQ $128, DI
	ADDQ $4, DX
	CMPQ DX, CX
	JLE  four

fewer:
	ADDQ $4, CX

single:
	CMPQ DX, CX
	JGE  done
	COLUMN(0, 0)
	ADDQ $32, SI
	ADDQ $32, DI
	INCQ DX
	JMP  single

done:
	VMOVUPD Y0, 0(BX)
	VMOVUPD Y1, 32(BX)
	VMOVUPD Y2, 64(BX)
	VMOVUPD Y3, 96(BX)
	VZEROUPPER
	RET

// CHAINS stores the sum of the four chains of a row's Dot. What is left of the row has been added to the first.
#define CHAINS(chains, low, at) \
	VEXTRACTF128 $1, chains, X6 \
	VUNPCKHPD    low, low, X5   \
	VADDSD       X5, low, low   \
	VUNPCKHPD    X6, X6, X5     \
	VADDSD       X5, X6, X6     \
	VADDSD       X6, low, low   \
	VMOVSD       low, at(BX)

// func dots4AVX(dst *[4]float64, v, x *float64, n int)
//
// A vector holds the four chains of Dot for one row.
TEXT ·dots4AVX(SB), NOSPLIT, $0-32
	MOVQ   dst+0(FP), BX
	MOVQ   v+8(FP), R8
	MOVQ   x+16(FP), SI
	MOVQ   n+24(FP), CX
	LEAQ   (R8)(CX*8), R9
	LEAQ   (R9)(CX*8), R10
	LEAQ   (R10)(CX*8), R11
	VXORPD Y0, Y0, Y0
	VXORPD Y1, Y1, Y1
	VXORPD Y2, Y2, Y2
	VXORPD Y3, Y3, Y3
	XORQ   DX, DX
	SUBQ   $4, CX
	JLT    fewer

four:
	VMOVUPD (SI)(DX*8), Y4
	VMULPD  (R8)(DX*8), Y4, Y5
	VMULPD  (R9)(DX*8), Y4, Y6
	VMULPD  (R10)(DX*8), Y4, Y7
	VMULPD  (R11)(DX*8), Y4, Y8
	VADDPD  Y5, Y0, Y0
	VADDPD  Y6, Y1, Y1
	VADDPD  Y7, Y2, Y2
	VADDPD  Y8, Y3, Y3
	ADDQ    $4, DX
	CMPQ    DX, CX
	JLE     four

fewer:
	ADDQ $4, CX
	CMPQ DX, CX
	JGE  done

	// VADDSD into X0 would clear the upper half of Y0.

single:
	VMOVSD (SI)(DX*8), X4
	VMULSD (R8)(DX*8), X4, X5
	VADDSD X5, X0, X6
	VBLENDPD $1, Y6, Y0, Y0
	VMULSD (R9)(DX*8), X4, X5
	VADDSD X5, X1, X6
	VBLENDPD $1, Y6, Y1, Y1
	VMULSD (R10)(DX*8), X4, X5
	VADDSD X5, X2, X6
	VBLENDPD $1, Y6, Y2, Y2
	VMULSD (R11)(DX*8), X4, X5
	VADDSD X5, X3, X6
	VBLENDPD $1, Y6, Y3, Y3
	INCQ   DX
	CMPQ   DX, CX
	JLT    single

done:
	CHAINS(Y0, X0, 0)
	CHAINS(Y1, X1, 8)
	CHAINS(Y2, X2, 16)
	CHAINS(Y3, X3, 24)
	VZEROUPPER
	RET

// func addRowsAVX(y, by, v *float64, n, k int)
//
// It keeps 32 columns of y in registers while it goes through the rows.
TEXT ·addRowsAVX(SB), NOSPLIT, $0-40
	MOVQ y+0(FP), R8
	MOVQ v+16(FP), R9
	MOVQ n+24(FP), CX
	MOVQ CX, R10
	SHLQ $3, R10
	SUBQ $32, CX
	JLT  below32

columns:
	MOVQ    by+8(FP), DI
	MOVQ    R9, SI
	MOVQ    k+32(FP), DX
	VMOVUPD 0(R8), Y0
	VMOVUPD 32(R8), Y1
	VMOVUPD 64(R8), Y2
	VMOVUPD 96(R8), Y3
	VMOVUPD 128(R8), Y4
	VMOVUPD 160(R8), Y5
	VMOVUPD 192(R8), Y6
	VMOVUPD 224(R8), Y7

rows:
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
	ADDQ         R10, SI
	DECQ         DX
	JNZ          rows

	VMOVUPD Y0, 0(R8)
	VMOVUPD Y1, 32(R8)
	VMOVUPD Y2, 64(R8)
	VMOVUPD Y3, 96(R8)
	VMOVUPD Y4, 128(R8)
	VMOVUPD Y5, 160(R8)
	VMOVUPD Y6, 192(R8)
	VMOVUPD Y7, 224(R8)
	ADDQ    $256, R8
	ADDQ    $256, R9
	SUBQ    $32, CX
	JGE     columns

below32:
	ADDQ $28, CX
	JLT  below4

four:
	MOVQ    by+8(FP), DI
	MOVQ    R9, SI
	MOVQ    k+32(FP), DX
	VMOVUPD (R8), Y0

fourRows:
	VBROADCASTSD (DI), Y8
	VMULPD       (SI), Y8, Y9
	VADDPD       Y9, Y0, Y0
	ADDQ         $8, DI
	ADDQ         R10, SI
	DECQ         DX
	JNZ          fourRows

	VMOVUPD Y0, (R8)
	ADDQ    $32, R8
	ADDQ    $32, R9
	SUBQ    $4, CX
	JGE     four

below4:
	ADDQ $4, CX
	JZ   done

single:
	MOVQ   by+8(FP), DI
	MOVQ   R9, SI
	MOVQ   k+32(FP), DX
	VMOVSD (R8), X0

singleRows:
	VMOVSD (DI), X8
	VMULSD (SI), X8, X9
	VADDSD X9, X0, X0
	ADDQ   $8, DI
	ADDQ   R10, SI
	DECQ   DX
	JNZ    singleRows

	VMOVSD X0, (R8)
	ADDQ   $8, R8
	ADDQ   $8, R9
	DECQ   CX
	JNZ    single

done:
	VZEROUPPER
	RET
