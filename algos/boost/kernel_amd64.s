//go:build !purego

#include "go_asm.h"
#include "textflag.h"

// Products and sums are separate instructions: a fused multiply-add would give other bits
// than kernel_generic.go. The kernels trust their callers that codes, rows, nodes and features
// are within what they index, as searcher, view and grove make and check them.

DATA ones<>+0(SB)/8, $0x3ff0000000000000
GLOBL ones<>(SB), RODATA|NOPTR, $8
DATA twos<>+0(SB)/8, $0x4000000000000000
GLOBL twos<>(SB), RODATA|NOPTR, $8
DATA minusOne<>+0(SB)/8, $0xbff0000000000000
GLOBL minusOne<>(SB), RODATA|NOPTR, $8
DATA magic<>+0(SB)/8, $0x4330000000000000 // 2⁵²
GLOBL magic<>(SB), RODATA|NOPTR, $8

// func descendAVX2(node, kept, bins *uint8, s *splits, nodes, n int)
//
// n is a multiple of 32.
TEXT ·descendAVX2(SB), NOSPLIT, $0-48
	MOVQ     node+0(FP), DI
	MOVQ     kept+8(FP), SI
	MOVQ     bins+16(FP), R8
	MOVQ     s+24(FP), R9
	MOVQ     nodes+32(FP), R10
	MOVQ     n+40(FP), R11
	LEAQ     splits_cut(R9), R12
	LEAQ     splits_right(R9), R13
	VPCMPEQB Y7, Y7, Y7 // −1
	XORQ     DX, DX

rows:
	CMPQ    DX, R11
	JGE     end
	VMOVDQU (DI)(DX*1), Y0
	VMOVDQU (SI)(DX*1), Y6
	VPXOR   Y1, Y1, Y1    // −1 where a row goes right
	VPXOR   Y2, Y2, Y2    // the node's number
	XORQ    CX, CX

nodes:
	MOVQ         (R9)(CX*8), AX
	ADDQ         DX, AX
	VMOVDQU      (R8)(AX*1), Y3
	VPBROADCASTB (R12)(CX*1), Y4
	VPMINUB      Y3, Y4, Y4
	VPCMPEQB     Y3, Y4, Y4      // bin ≤ cut
	VPCMPEQB     Y0, Y2, Y5
	VPANDN       Y5, Y4, Y5      // its row, and bin > cut
	VPOR         Y5, Y1, Y1
	VPSUBB       Y7, Y2, Y2
	VPAND        Y6, Y5, Y5
	VPMOVMSKB    Y5, BX
	POPCNTL      BX, BX
	ADDL         BX, (R13)(CX*4)
	INCQ         CX
	CMPQ         CX, R10
	JLT          nodes
	VPADDB       Y0, Y0, Y0
	VPSUBB       Y1, Y0, Y0
	VMOVDQU      Y0, (DI)(DX*1)
	ADDQ         $32, DX
	JMP          rows

end:
	VZEROUPPER
	RET

// func promisingAVX2(h *int64, n int, tg, th, unit, bound float64) bool
//
// n is a multiple of 4.
TEXT ·promisingAVX2(SB), NOSPLIT, $0-49
	MOVQ         h+0(FP), DI
	MOVQ         n+8(FP), CX
	VBROADCASTSD tg+16(FP), Y8
	VBROADCASTSD th+24(FP), Y9
	VBROADCASTSD unit+32(FP), Y10
	VBROADCASTSD bound+40(FP), Y11
	VBROADCASTSD magic<>(SB), Y12
	VPXOR        Y13, Y13, Y13 // 0
	VPXOR        Y14, Y14, Y14 // the sum of the bins before
	VPXOR        Y15, Y15, Y15 // −1 where a cut was promising
	XORQ         DX, DX

cuts:
	VMOVDQU      (DI)(DX*8), Y0
	VPSLLDQ      $8, Y0, Y1
	VPADDQ       Y1, Y0, Y0        // a, a+b, c, c+d
	VPERMQ       $0x55, Y0, Y1
	VPBLENDD     $0xf0, Y1, Y13, Y1 // 0, 0, a+b, a+b
	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y14, Y0, Y0
	VPERMQ       $0xff, Y0, Y14
	VEXTRACTI128 $1, Y0, X1
	VSHUFPS      $0xdd, X1, X0, X1
	VCVTDQ2PD    X1, Y1            // g, the upper halves
	VPBLENDD     $0xaa, Y12, Y0, Y0
	VSUBPD       Y12, Y0, Y0       // h, the lower halves
	VSUBPD       Y1, Y8, Y2        // r = tg−g
	VADDPD       Y10, Y0, Y3       // a = h+unit
	VSUBPD       Y0, Y9, Y4
	VADDPD       Y10, Y4, Y4       // b = th−h+unit
	VMULPD       Y1, Y1, Y1
	VMULPD       Y4, Y1, Y1        // g²b
	VMULPD       Y2, Y2, Y2
	VMULPD       Y3, Y2, Y2        // r²a
	VADDPD       Y2, Y1, Y1
	VMULPD       Y4, Y3, Y3
	VMULPD       Y11, Y3, Y3       // bound·ab
	VCMPPD       $0x15, Y3, Y1, Y1 // not less
	VORPD        Y1, Y15, Y15
	ADDQ         $4, DX
	CMPQ         DX, CX
	JLT          cuts
	VMOVMSKPD    Y15, AX
	TESTL        AX, AX
	SETNE        ret+48(FP)
	VZEROUPPER
	RET

// func bestCutAVX2(gains *cutGains, h *int64, cuts int, tg, th, unit float64) (gain float64, cut int)
//
// It reads h up to the next multiple of 4.
TEXT ·bestCutAVX2(SB), NOSPLIT, $0-64
	MOVQ         gains+0(FP), R8
	MOVQ         h+8(FP), DI
	MOVQ         cuts+16(FP), CX
	VBROADCASTSD tg+24(FP), Y8
	VBROADCASTSD th+32(FP), Y9
	VBROADCASTSD unit+40(FP), Y10
	VBROADCASTSD minusOne<>(SB), Y11
	VBROADCASTSD magic<>(SB), Y12
	VPXOR        Y13, Y13, Y13 // 0
	VPXOR        Y14, Y14, Y14 // the sum of the bins before
	VMOVUPD      Y11, Y15      // the largest gain
	XORQ         DX, DX

cuts:
	VMOVDQU      (DI)(DX*8), Y5
	VPSLLDQ      $8, Y5, Y1
	VPADDQ       Y1, Y5, Y0
	VPERMQ       $0x55, Y0, Y1
	VPBLENDD     $0xf0, Y1, Y13, Y1
	VPADDQ       Y1, Y0, Y0
	VPADDQ       Y14, Y0, Y0
	VPERMQ       $0xff, Y0, Y14
	VEXTRACTI128 $1, Y0, X1
	VSHUFPS      $0xdd, X1, X0, X1
	VCVTDQ2PD    X1, Y1            // g
	VPBLENDD     $0xaa, Y12, Y0, Y0
	VSUBPD       Y12, Y0, Y0       // h
	VSUBPD       Y1, Y8, Y2        // r = tg−g
	VADDPD       Y10, Y0, Y3
	VSUBPD       Y0, Y9, Y4
	VADDPD       Y10, Y4, Y4
	VMULPD       Y1, Y1, Y1
	VDIVPD       Y3, Y1, Y1        // g²/(h+unit)
	VMULPD       Y2, Y2, Y2
	VDIVPD       Y4, Y2, Y2        // r²/(th−h+unit)
	VADDPD       Y2, Y1, Y1
	VPCMPEQQ     Y13, Y5, Y5       // an empty bin: the cut before divides alike
	VBLENDVPD    Y5, Y11, Y1, Y1
	VMOVUPD      Y1, (R8)(DX*8)
	ADDQ         $4, DX
	CMPQ         DX, CX
	JGE          last
	VMAXPD       Y1, Y15, Y15
	JMP          cuts

last:
	// Beyond the last cut there is none.
	VMOVSD  X11, (R8)(CX*8)
	VMOVSD  X11, 8(R8)(CX*8)
	VMOVSD  X11, 16(R8)(CX*8)
	VMAXPD  -32(R8)(DX*8), Y15, Y15
	VEXTRACTF128 $1, Y15, X1
	VMAXPD  X1, X15, X1
	VPERMILPD $1, X1, X2
	VMAXSD  X2, X1, X1
	VMOVSD  X1, gain+48(FP)
	VBROADCASTSD X1, Y1
	XORQ    DX, DX

first:
	VCMPPD    $0, (R8)(DX*8), Y1, Y2
	VMOVMSKPD Y2, AX
	ADDQ      $4, DX
	TESTL     AX, AX
	JNE       found
	CMPQ      DX, CX
	JLT       first
	XORQ      AX, AX     // no gain is a number: there is no cut
	MOVQ      AX, cut+56(FP)
	VMOVSD    X11, gain+48(FP)
	VZEROUPPER
	RET

found:
	BSFL      AX, AX
	LEAQ      -4(DX)(AX*1), AX
	MOVQ      AX, cut+56(FP)
	VZEROUPPER
	RET

// func pickAVX2(list *int32, node, kept *uint8, small *[1 << (MaxDepth - 1)]uint8, n int) int
//
// n is a multiple of 32.
TEXT ·pickAVX2(SB), NOSPLIT, $0-48
	MOVQ           list+0(FP), R8
	MOVQ           node+8(FP), DI
	MOVQ           kept+16(FP), SI
	MOVQ           small+24(FP), AX
	MOVQ           n+32(FP), R11
	VBROADCASTI128 (AX), Y4
	XORQ           CX, CX
	XORQ           DX, DX

rows:
	CMPQ      DX, R11
	JGE       end
	VMOVDQU   (DI)(DX*1), Y0
	VPSHUFB   Y0, Y4, Y0
	VPAND     (SI)(DX*1), Y0, Y0
	VPMOVMSKB Y0, BX
	TESTL     BX, BX
	JEQ       next

bits:
	BSFL  BX, AX
	ADDL  DX, AX
	MOVL  AX, (R8)(CX*4)
	INCQ  CX
	LEAL  -1(BX), AX
	ANDL  AX, BX
	JNE   bits

next:
	ADDQ $32, DX
	JMP  rows

end:
	MOVQ CX, ret+40(FP)
	VZEROUPPER
	RET

// func addASM(h *int64, codes *uint16, rows *cells, n int, pairs *int64)
//
// The rows with cells are sorted by their number, so that the branches are foreseen.
TEXT ·addASM(SB), NOSPLIT, $0-40
	MOVQ h+0(FP), DI
	MOVQ codes+8(FP), R10
	MOVQ rows+16(FP), SI
	MOVQ n+24(FP), R12
	MOVQ pairs+32(FP), R8

row:
	MOVL cells_row(SI), AX
	MOVL 4(SI), DX
	MOVL 8(SI), CX
	ADDQ $12, SI
	MOVQ (R8)(AX*8), R9
	SUBQ DX, CX             // the number of cells
	LEAQ (R10)(DX*2), DX
	SUBQ $4, CX
	JLT  rest

four:
	MOVWLZX (DX), AX
	MOVWLZX 2(DX), BX
	ADDQ    R9, (DI)(AX*8)
	MOVWLZX 4(DX), AX
	ADDQ    R9, (DI)(BX*8)
	MOVWLZX 6(DX), BX
	ADDQ    R9, (DI)(AX*8)
	ADDQ    R9, (DI)(BX*8)
	ADDQ    $8, DX
	SUBQ    $4, CX
	JGE     four

rest:
	ADDQ $4, CX
	JEQ  next

one:
	MOVWLZX (DX), AX
	ADDQ    R9, (DI)(AX*8)
	ADDQ    $2, DX
	DECQ    CX
	JNE     one

next:
	DECQ R12
	JNE  row
	RET

// func addByNodeASM(h *int64, at *[1 << (MaxDepth - 1)]uint32, node *uint8, codes *uint16, spans *span,
//	rows *int32, n int, pairs *int64)
TEXT ·addByNodeASM(SB), NOSPLIT, $0-64
	MOVQ h+0(FP), DI
	MOVQ at+8(FP), R11
	MOVQ node+16(FP), R13
	MOVQ codes+24(FP), R10
	MOVQ spans+32(FP), R12
	MOVQ rows+40(FP), SI
	MOVQ n+48(FP), BX
	MOVQ pairs+56(FP), R8
	LEAQ (SI)(BX*4), BX

row:
	MOVL    (SI), AX
	ADDQ    $4, SI
	MOVL    (R12)(AX*8), DX
	MOVL    4(R12)(AX*8), CX
	MOVQ    (R8)(AX*8), R9
	MOVBLZX (R13)(AX*1), AX
	MOVL    (R11)(AX*4), AX
	LEAQ    (DI)(AX*8), R15
	SUBQ    DX, CX
	JEQ     next
	LEAQ    (R10)(DX*2), DX
	LEAQ    (DX)(CX*2), CX

cell:
	MOVWLZX (DX), AX
	ADDQ    R9, (R15)(AX*8)
	ADDQ    $2, DX
	CMPQ    DX, CX
	JNE     cell

next:
	CMPQ SI, BX
	JNE  row
	RET

// func sum4ASM(x *float64, features *int32, thresholds, leaves *float64, trees int) float64
TEXT ·sum4ASM(SB), NOSPLIT, $0-48
	MOVQ  x+0(FP), DI
	MOVQ  features+8(FP), SI
	MOVQ  thresholds+16(FP), R8
	MOVQ  leaves+24(FP), R9
	MOVQ  trees+32(FP), CX
	XORPS X0, X0

tree:
	MOVLQSX (SI), AX
	MOVSD   (R8), X1
	XORL    BX, BX
	MOVSD   (DI)(AX*8), X2
	UCOMISD X1, X2
	SETHI   BX               // x > t: a NaN is not
	XORL    DX, DX
	MOVLQSX 4(SI)(BX*4), AX
	MOVSD   8(R8)(BX*8), X1
	MOVSD   (DI)(AX*8), X2
	UCOMISD X1, X2
	SETHI   DX
	LEAQ    (DX)(BX*2), DX
	XORL    BX, BX
	MOVLQSX 12(SI)(DX*4), AX
	MOVSD   24(R8)(DX*8), X1
	MOVSD   (DI)(AX*8), X2
	UCOMISD X1, X2
	SETHI   BX
	LEAQ    (BX)(DX*2), BX
	XORL    DX, DX
	MOVLQSX 28(SI)(BX*4), AX
	MOVSD   56(R8)(BX*8), X1
	MOVSD   (DI)(AX*8), X2
	UCOMISD X1, X2
	SETHI   DX
	LEAQ    (DX)(BX*2), DX
	ADDSD   (R9)(DX*8), X0
	ADDQ    $60, SI
	ADDQ    $120, R8
	ADDQ    $128, R9
	DECQ    CX
	JNE     tree
	MOVSD   X0, ret+40(FP)
	RET

// func weighAVX2(z, weights *float64, pairs *int64, node, class *uint8, factor *[2 << MaxDepth]float64,
//	most, unit, sum float64, n int) float64
//
// n is a multiple of 4.
TEXT ·weighAVX2(SB), NOSPLIT, $0-88
	MOVQ         z+0(FP), DI
	MOVQ         weights+8(FP), SI
	MOVQ         pairs+16(FP), R8
	MOVQ         node+24(FP), R9
	MOVQ         class+32(FP), R10
	MOVQ         factor+40(FP), R11
	VBROADCASTSD most+48(FP), Y8
	VBROADCASTSD unit+56(FP), Y9
	VMOVSD       sum+64(FP), X10
	MOVQ         n+72(FP), CX
	VBROADCASTSD ones<>(SB), Y11
	VBROADCASTSD twos<>(SB), Y12
	VBROADCASTSD magic<>(SB), Y13
	VPXOR        Y14, Y14, Y14
	XORQ         DX, DX

rows:
	VPMOVZXBD  (R9)(DX*1), X0   // node
	VPMOVZXBD  (R10)(DX*1), X1  // class
	VPADDD     X0, X0, X0
	VPADDD     X1, X0, X0       // 2·node + class
	VPXOR      Y2, Y2, Y2
	VPCMPEQD   Y3, Y3, Y3
	VGATHERDPD Y3, (R11)(X0*8), Y2
	VPMOVZXDQ  X1, Y1
	VPCMPEQQ   Y14, Y1, Y1      // −1 for class 0
	VMULPD     (DI)(DX*8), Y2, Y2
	VMINPD     Y2, Y8, Y2       // z
	VMOVUPD    Y2, (DI)(DX*8)
	VADDPD     Y2, Y11, Y3
	VDIVPD     Y3, Y11, Y3      // q = 1/(1+z)
	VMULPD     Y3, Y2, Y4
	VMULPD     (SI)(DX*8), Y4, Y4 // s = ω·zq
	VADDSD     X4, X10, X10
	VPERMILPD  $1, X4, X5
	VADDSD     X5, X10, X10
	VEXTRACTF128 $1, Y4, X5
	VADDSD     X5, X10, X10
	VPERMILPD  $1, X5, X5
	VADDSD     X5, X10, X10
	VMULPD     Y9, Y4, Y4       // u
	VMULPD     Y3, Y4, Y3
	VMULPD     Y12, Y3, Y3      // 2uq
	VADDPD     Y13, Y4, Y4
	VPSUBQ     Y13, Y4, Y4      // g
	VADDPD     Y13, Y3, Y3
	VPSUBQ     Y13, Y3, Y3      // h
	VPXOR      Y1, Y4, Y4
	VPSUBQ     Y1, Y4, Y4       // −g for class 0
	VPSLLQ     $32, Y4, Y4
	VPADDQ     Y3, Y4, Y4
	VMOVDQU    Y4, (R8)(DX*8)
	ADDQ       $4, DX
	CMPQ       DX, CX
	JLT        rows
	VMOVSD     X10, ret+80(FP)
	VZEROUPPER
	RET
