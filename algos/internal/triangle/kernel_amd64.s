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
