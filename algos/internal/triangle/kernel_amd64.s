//go:build !purego

#include "textflag.h"

// Products and sums are separate instructions: a fused multiply-add would give
// other bits than the Go kernels. A vector holds four outputs, never four terms
// of one sum, so that each output sums in the order of kernel_generic.go.

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

// func symm4AVX(r0, r1, r2, r3, x, y *float64, xi, s *[16]float64, n int)
TEXT ·symm4AVX(SB), NOSPLIT, $0-72
	MOVQ    r0+0(FP), R8
	MOVQ    r1+8(FP), R9
	MOVQ    r2+16(FP), R10
	MOVQ    r3+24(FP), R11
	MOVQ    x+32(FP), SI
	MOVQ    y+40(FP), DI
	MOVQ    xi+48(FP), AX
	MOVQ    s+56(FP), BX
	MOVQ    n+64(FP), CX
	VMOVUPD 0(AX), Y8
	VMOVUPD 32(AX), Y9
	VMOVUPD 64(AX), Y10
	VMOVUPD 96(AX), Y11
	VMOVUPD 0(BX), Y4
	VMOVUPD 32(BX), Y5
	VMOVUPD 64(BX), Y6
	VMOVUPD 96(BX), Y7
	XORQ    DX, DX
	TESTQ   CX, CX
	JLE     store

loop:
	VMOVUPD      (SI), Y0
	VBROADCASTSD (R8)(DX*8), Y1
	VBROADCASTSD (R9)(DX*8), Y2
	VMULPD       Y0, Y1, Y3
	VMULPD       Y0, Y2, Y12
	VADDPD       Y3, Y4, Y4
	VADDPD       Y12, Y5, Y5
	VMULPD       Y8, Y1, Y1
	VMULPD       Y9, Y2, Y2
	VADDPD       Y2, Y1, Y1
	VBROADCASTSD (R10)(DX*8), Y2
	VBROADCASTSD (R11)(DX*8), Y3
	VMULPD       Y0, Y2, Y13
	VMULPD       Y0, Y3, Y14
	VADDPD       Y13, Y6, Y6
	VADDPD       Y14, Y7, Y7
	VMULPD       Y10, Y2, Y2
	VMULPD       Y11, Y3, Y3
	VADDPD       Y3, Y2, Y2
	VADDPD       Y2, Y1, Y1
	VADDPD       (DI), Y1, Y1
	VMOVUPD      Y1, (DI)
	ADDQ         $32, SI
	ADDQ         $32, DI
	INCQ         DX
	CMPQ         DX, CX
	JLT          loop

store:
	VMOVUPD Y4, 0(BX)
	VMOVUPD Y5, 32(BX)
	VMOVUPD Y6, 64(BX)
	VMOVUPD Y7, 96(BX)
	VZEROUPPER
	RET

// func rank4x8AVX(r0, r1, r2, r3, gu, u *float64, k int)
TEXT ·rank4x8AVX(SB), NOSPLIT, $0-56
	MOVQ    r0+0(FP), R8
	MOVQ    r1+8(FP), R9
	MOVQ    r2+16(FP), R10
	MOVQ    r3+24(FP), R11
	MOVQ    gu+32(FP), SI
	MOVQ    u+40(FP), DI
	MOVQ    k+48(FP), CX
	VMOVUPD 0(R8), Y0
	VMOVUPD 32(R8), Y1
	VMOVUPD 0(R9), Y2
	VMOVUPD 32(R9), Y3
	VMOVUPD 0(R10), Y4
	VMOVUPD 32(R10), Y5
	VMOVUPD 0(R11), Y6
	VMOVUPD 32(R11), Y7
	TESTQ   CX, CX
	JLE     store

loop:
	VMOVUPD      0(DI), Y8
	VMOVUPD      32(DI), Y9
	VBROADCASTSD 0(SI), Y10
	VBROADCASTSD 8(SI), Y11
	VMULPD       Y8, Y10, Y12
	VMULPD       Y9, Y10, Y13
	VMULPD       Y8, Y11, Y14
	VMULPD       Y9, Y11, Y15
	VADDPD       Y12, Y0, Y0
	VADDPD       Y13, Y1, Y1
	VADDPD       Y14, Y2, Y2
	VADDPD       Y15, Y3, Y3
	VBROADCASTSD 16(SI), Y10
	VBROADCASTSD 24(SI), Y11
	VMULPD       Y8, Y10, Y12
	VMULPD       Y9, Y10, Y13
	VMULPD       Y8, Y11, Y14
	VMULPD       Y9, Y11, Y15
	VADDPD       Y12, Y4, Y4
	VADDPD       Y13, Y5, Y5
	VADDPD       Y14, Y6, Y6
	VADDPD       Y15, Y7, Y7
	ADDQ         $32, SI
	ADDQ         $64, DI
	DECQ         CX
	JNZ          loop

store:
	VMOVUPD Y0, 0(R8)
	VMOVUPD Y1, 32(R8)
	VMOVUPD Y2, 0(R9)
	VMOVUPD Y3, 32(R9)
	VMOVUPD Y4, 0(R10)
	VMOVUPD Y5, 32(R10)
	VMOVUPD Y6, 0(R11)
	VMOVUPD Y7, 32(R11)
	VZEROUPPER
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
