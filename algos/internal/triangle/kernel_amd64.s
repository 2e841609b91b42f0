//go:build !purego

#include "textflag.h"

// Products and sums are separate instructions: a fused multiply-add would give
// other bits than the Go kernels. A vector holds four outputs, never four terms
// of one sum, so that each output sums in the order of kernel_generic.go. For sums
// along rows four columns of four rows are transposed.

// func supportsAVX() bool
TEXT ·supportsAVX(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18000000, CX // OSXSAVE and AVX
	CMPL CX, $0x18000000
	JNE  done
	XORL CX, CX
	XGETBV               // the system saves the registers
	ANDL $6, AX
	CMPL AX, $6
	JNE  done
	MOVB $1, ret+0(FP)

done:
	RET

// func outer4AVX(r0, r1, r2, r3 *float64, by *[4]float64, x *float64, n int)
TEXT ·outer4AVX(SB), NOSPLIT, $0-56
	MOVQ         r0+0(FP), R8
	MOVQ         r1+8(FP), R9
	MOVQ         r2+16(FP), R10
	MOVQ         r3+24(FP), R11
	MOVQ         by+32(FP), AX
	MOVQ         x+40(FP), SI
	MOVQ         n+48(FP), CX
	VBROADCASTSD 0(AX), Y4
	VBROADCASTSD 8(AX), Y5
	VBROADCASTSD 16(AX), Y6
	VBROADCASTSD 24(AX), Y7
	XORQ         DX, DX
	SUBQ         $4, CX
	JLT          tail

loop:
	VMOVUPD (SI)(DX*8), Y0
	VMULPD  Y0, Y4, Y8
	VMULPD  Y0, Y5, Y9
	VMULPD  Y0, Y6, Y10
	VMULPD  Y0, Y7, Y11
	VADDPD  (R8)(DX*8), Y8, Y8
	VADDPD  (R9)(DX*8), Y9, Y9
	VADDPD  (R10)(DX*8), Y10, Y10
	VADDPD  (R11)(DX*8), Y11, Y11
	VMOVUPD Y8, (R8)(DX*8)
	VMOVUPD Y9, (R9)(DX*8)
	VMOVUPD Y10, (R10)(DX*8)
	VMOVUPD Y11, (R11)(DX*8)
	ADDQ    $4, DX
	CMPQ    DX, CX
	JLE     loop

tail:
	ADDQ $4, CX

single:
	CMPQ   DX, CX
	JGE    end
	VMOVSD (SI)(DX*8), X0
	VMULSD X0, X4, X8
	VMULSD X0, X5, X9
	VMULSD X0, X6, X10
	VMULSD X0, X7, X11
	VADDSD (R8)(DX*8), X8, X8
	VADDSD (R9)(DX*8), X9, X9
	VADDSD (R10)(DX*8), X10, X10
	VADDSD (R11)(DX*8), X11, X11
	VMOVSD X8, (R8)(DX*8)
	VMOVSD X9, (R9)(DX*8)
	VMOVSD X10, (R10)(DX*8)
	VMOVSD X11, (R11)(DX*8)
	INCQ   DX
	JMP    single

end:
	VZEROUPPER
	RET

// COLUMNS adds the products of four columns with four entries of x to the sums of four rows, in Y12.
// The rows are in Y0 to Y3.
#define COLUMNS \
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
	VADDPD       Y0, Y12, Y12     \
	VADDPD       Y1, Y12, Y12     \
	VADDPD       Y2, Y12, Y12     \
	VADDPD       Y3, Y12, Y12

// func dot4AVX(s *[4]float64, r0, r1, r2, r3, x *float64, n int)
//
// n is a multiple of four, and not 0.
TEXT ·dot4AVX(SB), NOSPLIT, $0-56
	MOVQ    s+0(FP), DI
	MOVQ    r0+8(FP), R8
	MOVQ    r1+16(FP), R9
	MOVQ    r2+24(FP), R10
	MOVQ    r3+32(FP), R11
	MOVQ    x+40(FP), SI
	MOVQ    n+48(FP), CX
	VMOVUPD (DI), Y12
	XORQ    DX, DX

dot:
	VMOVUPD (R8)(DX*8), Y0
	VMOVUPD (R9)(DX*8), Y1
	VMOVUPD (R10)(DX*8), Y2
	VMOVUPD (R11)(DX*8), Y3
	COLUMNS
	ADDQ    $4, DX
	CMPQ    DX, CX
	JL      dot

	VMOVUPD Y12, (DI)
	VZEROUPPER
	RET

// func both4AVX(s *[4]float64, y, r0, r1, r2, r3 *float64, by *[4]float64, x *float64, n int)
//
// n is a multiple of four, and not 0.
TEXT ·both4AVX(SB), NOSPLIT, $0-72
	MOVQ         s+0(FP), DI
	MOVQ         y+8(FP), BX
	MOVQ         r0+16(FP), R8
	MOVQ         r1+24(FP), R9
	MOVQ         r2+32(FP), R10
	MOVQ         r3+40(FP), R11
	MOVQ         by+48(FP), AX
	MOVQ         x+56(FP), SI
	MOVQ         n+64(FP), CX
	VMOVUPD      (DI), Y12
	VBROADCASTSD 0(AX), Y8
	VBROADCASTSD 8(AX), Y9
	VBROADCASTSD 16(AX), Y10
	VBROADCASTSD 24(AX), Y11
	XORQ         DX, DX

both:
	VMOVUPD (R8)(DX*8), Y0
	VMOVUPD (R9)(DX*8), Y1
	VMOVUPD (R10)(DX*8), Y2
	VMOVUPD (R11)(DX*8), Y3
	VMULPD  Y0, Y8, Y4
	VMULPD  Y1, Y9, Y5
	VMULPD  Y2, Y10, Y6
	VMULPD  Y3, Y11, Y7
	VADDPD  Y5, Y4, Y4
	VADDPD  Y7, Y6, Y6
	VADDPD  Y6, Y4, Y4
	VADDPD  (BX)(DX*8), Y4, Y4
	VMOVUPD Y4, (BX)(DX*8)
	COLUMNS
	ADDQ    $4, DX
	CMPQ    DX, CX
	JL      both

	VMOVUPD Y12, (DI)
	VZEROUPPER
	RET
