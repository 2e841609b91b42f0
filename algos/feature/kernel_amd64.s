//go:build !purego

#include "textflag.h"

// HASH is mix of four numbers in Y0, after salt, and takes their upper bits: indices. A product of 64 bits is
// three of 32.
#define HASH \
	VPADDQ   Y14, Y0, Y0 \
	VPSRLQ   $32, Y0, Y1 \
	VPMULUDQ Y13, Y1, Y1 \
	VPMULUDQ Y12, Y0, Y2 \
	VPADDQ   Y2, Y1, Y1  \
	VPSLLQ   $32, Y1, Y1 \
	VPMULUDQ Y13, Y0, Y0 \
	VPADDQ   Y1, Y0, Y0  \
	VPSRLQ   $32, Y0, Y1 \
	VPXOR    Y1, Y0, Y0  \
	VPMULUDQ Y11, Y1, Y1 \
	VPMULUDQ Y10, Y0, Y2 \
	VPADDQ   Y2, Y1, Y1  \
	VPSLLQ   $32, Y1, Y1 \
	VPMULUDQ Y11, Y0, Y0 \
	VPADDQ   Y1, Y0, Y0  \
	VPSRLQ   X9, Y0, Y0

// FACTORS loads the factors of mix, and their upper halves.
#define FACTORS \
	VPBROADCASTQ factors<>+0(SB), Y13 \
	VPBROADCASTQ factors<>+8(SB), Y11 \
	VPSRLQ       $32, Y13, Y12        \
	VPSRLQ       $32, Y11, Y10

DATA factors<>+0(SB)/8, $0x9e3779b97f4a7c15
DATA factors<>+8(SB)/8, $0xd6e8feb86659fd93
GLOBL factors<>(SB), RODATA|NOPTR, $16

// SIFT keeps the index at from of the stack if it is new. The next one overwrites it if it is not.
#define SIFT(from) \
	MOVQ from, AX           \
	MOVL AX, (DI)(BX*4)     \
	MOVQ AX, DX             \
	SHRQ $6, DX             \
	MOVQ (R13)(DX*8), R14   \
	BTSQ AX, R14            \ // carry: it is there
	MOVQ R14, (R13)(DX*8)   \
	SBBQ $-1, BX

// func siftGramsAVX2(index *uint32, grams int, text *byte, salts *[4]uint64, bytes *[32]byte, shift uint, present *uint64) int
//
// Four grams at a time. grams is a multiple of four. It reads 15 bytes from the last gram on.
TEXT ·siftGramsAVX2(SB), NOSPLIT, $32-64
	MOVQ    index+0(FP), DI
	MOVQ    grams+8(FP), R15
	MOVQ    text+16(FP), SI
	MOVQ    salts+24(FP), R8
	MOVQ    bytes+32(FP), R9
	MOVQ    shift+40(FP), CX
	MOVQ    present+48(FP), R13
	VMOVDQU (R8), Y14
	VMOVDQU (R9), Y15
	VMOVQ   CX, X9
	FACTORS
	XORQ    BX, BX
	ADDQ    SI, R15             // the end

grams:
	VBROADCASTI128 (SI), Y0
	VPSHUFB        Y15, Y0, Y0
	HASH
	VMOVDQU        Y0, indices-32(SP)
	SIFT(indices-32(SP))
	SIFT(indices-24(SP))
	SIFT(indices-16(SP))
	SIFT(indices-8(SP))
	ADDQ           $4, SI
	CMPQ           SI, R15
	JB             grams

	MOVQ BX, ret+56(FP)
	VZEROUPPER
	RET

// func hashStringsAVX2(index *uint32, text *byte, n int, salts *[4]uint64, bytes *[32]byte, shift uint)
//
// The four strings that end at the fifth byte of text, and at the n−1 behind it. It reads 3 bytes behind the last.
TEXT ·hashStringsAVX2(SB), NOSPLIT, $0-48
	MOVQ    index+0(FP), DI
	MOVQ    text+8(FP), SI
	MOVQ    n+16(FP), R15
	MOVQ    salts+24(FP), R8
	MOVQ    bytes+32(FP), R9
	MOVQ    shift+40(FP), CX
	VMOVDQU (R8), Y14
	VMOVDQU (R9), Y15
	VMOVQ   CX, X9
	FACTORS

strings:
	VPBROADCASTQ (SI), Y0
	VPSHUFB      Y15, Y0, Y0
	HASH
	VEXTRACTI128 $1, Y0, X1
	VSHUFPS      $0x88, X1, X0, X0
	VMOVUPS      X0, (DI)
	INCQ         SI
	ADDQ         $16, DI
	DECQ         R15
	JNZ          strings
	VZEROUPPER
	RET

// EVERY sets all bytes of a register.
#define EVERY(byte, low, to) \
	MOVL         byte, AX  \
	VMOVD        AX, low   \
	VPBROADCASTB low, to

// func lowerAVX2(out, text *byte, n int)
//
// n is a multiple of 32.
TEXT ·lowerAVX2(SB), NOSPLIT, $0-24
	MOVQ out+0(FP), DI
	MOVQ text+8(FP), SI
	MOVQ n+16(FP), CX
	EVERY($0x3f, X4, Y4) // 128 - 'A': then A is the least signed byte
	EVERY($0x9a, X6, Y6) // -128 + 26
	EVERY($0x20, X9, Y9) // 'a' - 'A'

lower:
	VMOVDQU  (SI), Y0
	VPADDB   Y4, Y0, Y1
	VPCMPGTB Y1, Y6, Y1  // A to Z
	VPAND    Y9, Y1, Y1
	VPOR     Y1, Y0, Y0
	VMOVDQU  Y0, (DI)
	ADDQ     $32, SI
	ADDQ     $32, DI
	SUBQ     $32, CX
	JG       lower
	VZEROUPPER
	RET

// func shapeAVX2(dst, text *byte, n int, kept *[256][8]byte) int
//
// 16 bytes at a time. n is a multiple of 16. It writes eight bytes at once, fewer of which count.
TEXT ·shapeAVX2(SB), NOSPLIT, $0-40
	MOVQ     dst+0(FP), DI
	MOVQ     text+8(FP), SI
	MOVQ     n+16(FP), CX
	MOVQ     kept+24(FP), R8
	MOVQ     DI, R9
	EVERY($0x3f, X4, X4)  // 128 - 'A'
	EVERY($0x1f, X5, X5)  // 128 - 'a'
	EVERY($0x9a, X6, X6)  // -128 + 26
	EVERY($0x50, X7, X7)  // 128 - '0'
	EVERY($0x8a, X8, X8)  // -128 + 10
	EVERY($0x75, X9, X9)  // u
	EVERY($0x61, X10, X10) // a
	EVERY($0x39, X11, X11) // 9
	EVERY($0x7e, X12, X12) // ~
	VPCMPEQB X13, X13, X13 // the kinds before: none

shapes:
	VMOVDQU   (SI), X0
	VPADDB    X4, X0, X1
	VPCMPGTB  X1, X6, X1
	VPADDB    X5, X0, X2
	VPCMPGTB  X2, X6, X2
	VPADDB    X7, X0, X3
	VPCMPGTB  X3, X8, X3
	VPBLENDVB X0, X12, X0, X0 // from 128 on
	VPBLENDVB X1, X9, X0, X0
	VPBLENDVB X2, X10, X0, X0
	VPBLENDVB X3, X11, X0, X0 // the kinds
	VPALIGNR  $15, X13, X0, X1
	VPALIGNR  $14, X13, X0, X2
	VPCMPEQB  X1, X0, X1
	VPCMPEQB  X2, X0, X2
	VPAND     X2, X1, X1
	VPMOVMSKB X1, AX          // the third of their kind in a row
	XORL      $0xffff, AX
	MOVBLZX   AL, DX
	SHRL      $8, AX
	VMOVQ     (R8)(DX*8), X1
	VPSHUFB   X1, X0, X1
	VMOVQ     X1, (DI)
	POPCNTL   DX, DX
	ADDQ      DX, DI
	VPSRLDQ   $8, X0, X2
	VMOVQ     (R8)(AX*8), X1
	VPSHUFB   X1, X2, X1
	VMOVQ     X1, (DI)
	POPCNTL   AX, AX
	ADDQ      AX, DI
	VMOVDQA   X0, X13
	ADDQ      $16, SI
	SUBQ      $16, CX
	JG        shapes

	SUBQ R9, DI
	MOVQ DI, ret+32(FP)
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
