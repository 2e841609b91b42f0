//go:build !purego

#include "textflag.h"

// func siftGrams(index *uint32, grams int, text *byte, before, mask, salt uint64, shift uint, present *uint64) int
TEXT ·siftGrams(SB), NOSPLIT, $0-72
	MOVQ index+0(FP), DI
	MOVQ grams+8(FP), R15
	MOVQ text+16(FP), SI
	MOVQ before+24(FP), R8
	MOVQ mask+32(FP), R9
	MOVQ salt+40(FP), R10
	MOVQ shift+48(FP), CX
	MOVQ present+56(FP), R13
	MOVQ $0x9e3779b97f4a7c15, R11
	MOVQ $0xd6e8feb86659fd93, R12
	XORQ BX, BX
	ADDQ SI, R15                  // the end

gram:
	MOVBLZX (SI), AX
	SHLQ    $8, R8
	ORQ     AX, R8
	MOVQ    R8, AX
	ANDQ    R9, AX
	ADDQ    R10, AX
	IMULQ   R11, AX
	MOVQ    AX, DX
	SHRQ    $32, DX
	XORQ    DX, AX
	IMULQ   R12, AX
	SHRQ    CX, AX             // the index
	MOVL    AX, (DI)(BX*4)     // the next one overwrites it if it is not new
	MOVQ    AX, DX
	SHRQ    $6, DX
	MOVQ    (R13)(DX*8), R14
	BTSQ    AX, R14            // carry: it is there
	MOVQ    R14, (R13)(DX*8)
	SBBQ    $-1, BX
	INCQ    SI
	CMPQ    SI, R15
	JB      gram

	MOVQ BX, ret+64(FP)
	RET

// TWICE puts eight equal bytes into both halves of a register.
#define TWICE(bytes, to) \
	MOVQ       bytes, AX \
	MOVQ       AX, to    \
	PUNPCKLQDQ to, to

// FOLD folds 16 bytes, and shifts their bits into BX from above: 1 for those of a word.
#define FOLD(at) \
	MOVOU    at(SI), X0 \
	MOVO     X0, X1     \
	PADDB    X4, X1     \
	MOVO     X6, X2     \
	PCMPGTB  X1, X2     \ // A to Z
	PAND     X9, X2     \
	POR      X2, X0     \
	MOVO     X0, X1     \
	PADDB    X5, X1     \
	MOVO     X6, X2     \
	PCMPGTB  X1, X2     \ // a to z
	MOVO     X0, X1     \
	PADDB    X7, X1     \
	MOVO     X8, X3     \
	PCMPGTB  X1, X3     \ // 0 to 9
	POR      X3, X2     \
	PXOR     X3, X3     \
	PCMPGTB  X0, X3     \ // from 128 on
	POR      X3, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X10, X1    \
	POR      X1, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X11, X1    \
	POR      X1, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X12, X1    \
	POR      X1, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X13, X1    \
	POR      X1, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X14, X1    \
	POR      X1, X2     \
	MOVO     X0, X1     \
	PCMPEQB  X15, X1    \
	POR      X1, X2     \
	PAND     X2, X0     \
	MOVOU    X0, at(DI) \
	PMOVMSKB X2, AX     \
	SHLQ     $48, AX    \
	SHRQ     $16, BX    \
	ORQ      AX, BX

// func foldBlocks(folded *byte, inside *uint64, text *byte, blocks int)
TEXT ·foldBlocks(SB), NOSPLIT, $0-32
	MOVQ folded+0(FP), DI
	MOVQ inside+8(FP), DX
	MOVQ text+16(FP), SI
	MOVQ blocks+24(FP), CX
	TWICE($0x3f3f3f3f3f3f3f3f, X4)  // 128 - 'A': then A is the least signed byte
	TWICE($0x1f1f1f1f1f1f1f1f, X5)  // 128 - 'a'
	TWICE($0x9a9a9a9a9a9a9a9a, X6)  // -128 + 26
	TWICE($0x5050505050505050, X7)  // 128 - '0'
	TWICE($0x8a8a8a8a8a8a8a8a, X8)  // -128 + 10
	TWICE($0x2020202020202020, X9)  // 'a' - 'A'
	TWICE($0x2727272727272727, X10) // '
	TWICE($0x2d2d2d2d2d2d2d2d, X11) // -
	TWICE($0x2424242424242424, X12) // $
	TWICE($0x2e2e2e2e2e2e2e2e, X13) // .
	TWICE($0x5f5f5f5f5f5f5f5f, X14) // _
	TWICE($0x4040404040404040, X15) // @

block:
	FOLD(0)
	FOLD(16)
	FOLD(32)
	FOLD(48)
	MOVQ BX, (DX)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $8, DX
	DECQ CX
	JNZ  block
	RET
