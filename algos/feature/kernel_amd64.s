//go:build !purego

#include "textflag.h"

// MIX is mix of four numbers in Y0. A product of 64 bits is three of 32.
#define MIX \
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
	VPADDQ   Y1, Y0, Y0

// HASH is MIX after salt, and takes the upper bits: indices.
#define HASH \
	VPADDQ Y14, Y0, Y0 \
	MIX                \
	VPSRLQ X9, Y0, Y0

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

// LOAD starts loading the feature of the index in reg.
#define LOAD(reg, size, table) \
	IMULQ      size, reg      \
	PREFETCHT0 (table)(reg*1)

// func siftGramsAVX2(index *uint32, grams int, text *byte, salts *[4]uint64, bytes *[32]byte, shift uint,
//	present *uint64, table *byte, size int) (k, loaded int)
//
// Four grams at a time. grams is a multiple of four. It reads 15 bytes from the last gram on. For each four it starts to
// load two features that are left: more would wait for memory. It has started to load the first loaded of them.
TEXT ·siftGramsAVX2(SB), NOSPLIT, $32-88
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
	MOVQ    table+56(FP), R8
	MOVQ    size+64(FP), R9
	XORQ    R10, R10
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
	MOVL           (DI)(R10*4), AX
	MOVL           4(DI)(R10*4), DX
	LOAD(AX, R9, R8)
	LOAD(DX, R9, R8)
	ADDQ           $2, R10
	CMPQ           R10, BX
	CMOVQGT        BX, R10
	ADDQ           $4, SI
	CMPQ           SI, R15
	JB             grams

	MOVQ BX, k+72(FP)
	MOVQ R10, loaded+80(FP)
	VZEROUPPER
	RET

// SIFTLOAD is SIFT and LOAD.
#define SIFTLOAD(from) \
	SIFT(from)         \
	LOAD(AX, R12, R11)

// FNV goes on with a byte of each of four words: hash is of their bytes so far, word of the whole words, left is
// negative where a word has ended.
#define FNV(byte, bytes, hash, word, left) \
	VPSHUFB   byte<>(SB), bytes, Y2 \
	VPXOR     hash, Y2, Y2          \
	VPSRLQ    $32, hash, Y3         \
	VPMULUDQ  Y15, Y3, Y3           \
	VPMULUDQ  Y15, Y2, Y4           \
	VPSLLQ    $32, Y3, Y3           \
	VPSLLQ    $40, Y2, Y2           \
	VPADDQ    Y2, Y3, Y3            \
	VPADDQ    Y4, Y3, hash          \
	VBLENDVPD left, word, hash, word \
	VPSUBQ    Y14, left, left

#define TWOFNV(byte) \
	FNV(byte, Y1, Y7, Y0, Y6)    \
	FNV(byte, Y11, Y13, Y10, Y12)

// LEFT makes left of the bounds of four words: in the upper half, the bytes that are hashed, less one.
#define LEFT(at, left) \
	VMOVDQU at(R8), left         \
	VPSRLQ  $32, left, Y2        \
	VPSUBD  left, Y2, left       \
	VPSLLQ  $32, left, left      \
	VPMINSD Y5, left, left       \
	VPSUBQ  Y14, left, left

// EIGHT loads eight bytes of each of four words.
#define EIGHT(at, low, bytes) \
	MOVL        at(R8), AX                 \
	MOVL        at+8(R8), DX               \
	MOVL        at+16(R8), R9              \
	MOVL        at+24(R8), R10             \
	VMOVQ       (SI)(AX*1), low            \
	VPINSRQ     $1, (SI)(DX*1), low, low   \
	VMOVQ       (SI)(R9*1), X2             \
	VPINSRQ     $1, (SI)(R10*1), X2, X2    \
	VINSERTI128 $1, X2, bytes, bytes

// PAIRS mixes the words in Y0, where Y5 has those before them.
#define PAIRS \
	VPSLLQ $23, Y5, Y4  \
	VPSRLQ $41, Y5, Y5  \
	VPOR   Y4, Y5, Y5   \
	VPADDQ Y5, Y0, Y0   \
	MIX                 \
	VPSRLQ X9, Y0, Y0

// func siftWordsAVX2(index *uint32, folded *byte, bounds *uint32, words int, salt, before uint64, shift uint,
//	present *uint64, table *byte, size int) (k, done int, last uint64)
//
// Eight words at a time, as two times four, since a hash waits for the one before it. words is a multiple of eight. It
// stops before eight words one of which has the hash 0. From a word's begin on it reads longWordLoad bytes.
TEXT ·siftWordsAVX2(SB), NOSPLIT, $128-104
	MOVQ         index+0(FP), DI
	MOVQ         bounds+16(FP), R8
	MOVQ         words+24(FP), R15
	MOVQ         present+56(FP), R13
	VPBROADCASTQ before+40(FP), Y8
	VMOVQ        shift+48(FP), X9
	VPBROADCASTQ fnv<>+0(SB), Y15
	VPBROADCASTQ fnv<>+8(SB), Y14
	XORQ         BX, BX

words:
	MOVQ         folded+8(FP), SI
	VPBROADCASTQ fnv<>+24(SB), Y5
	LEFT(0, Y6)
	LEFT(32, Y12)
	VPBROADCASTQ fnv<>+16(SB), Y7
	VMOVDQA      Y7, Y13

	EIGHT(0, X1, Y1)
	EIGHT(32, X11, Y11)
	TWOFNV(byte0)
	TWOFNV(byte1)
	TWOFNV(byte2)
	TWOFNV(byte3)
	TWOFNV(byte4)
	TWOFNV(byte5)
	TWOFNV(byte6)
	TWOFNV(byte7)
	ADDQ         $8, SI

more:
	VPAND        Y12, Y6, Y2
	VMOVMSKPD    Y2, AX
	CMPL         AX, $15
	JEQ          hashed
	EIGHT(0, X1, Y1) // of which four count: few words are much longer
	EIGHT(32, X11, Y11)
	TWOFNV(byte0)
	TWOFNV(byte1)
	TWOFNV(byte2)
	TWOFNV(byte3)
	ADDQ         $4, SI
	JMP          more

hashed:
	VPBROADCASTQ salt+32(FP), Y5
	VPADDQ       Y5, Y0, Y0
	VPADDQ       Y5, Y10, Y7
	FACTORS
	MIX
	VMOVDQA      Y0, Y6
	VMOVDQA      Y7, Y0
	MIX
	VPXOR        Y3, Y3, Y3
	VPCMPEQQ     Y3, Y0, Y4
	VPCMPEQQ     Y3, Y6, Y3
	VPOR         Y3, Y4, Y4
	VPTEST       Y4, Y4
	JNZ          done
	VPSRLQ       X9, Y6, Y3
	VPSRLQ       X9, Y0, Y4
	VMOVDQU      Y3, word-128(SP)
	VMOVDQU      Y4, word-64(SP)
	VPERMQ       $0x93, Y6, Y3
	VPERMQ       $0x93, Y0, Y7
	VPBLENDD     $3, Y3, Y7, Y5 // before the second four
	VPBLENDD     $3, Y8, Y3, Y3 // before the first
	VMOVDQA      Y7, Y8
	PAIRS
	VMOVDQU      Y0, pair-32(SP)
	VMOVDQA      Y6, Y0
	VMOVDQA      Y3, Y5
	PAIRS
	VMOVDQU      Y0, pair-96(SP)
	MOVQ         table+64(FP), R11
	MOVQ         size+72(FP), R12
	SIFTLOAD(word-128(SP))
	SIFTLOAD(pair-96(SP))
	SIFTLOAD(word-120(SP))
	SIFTLOAD(pair-88(SP))
	SIFTLOAD(word-112(SP))
	SIFTLOAD(pair-80(SP))
	SIFTLOAD(word-104(SP))
	SIFTLOAD(pair-72(SP))
	SIFTLOAD(word-64(SP))
	SIFTLOAD(pair-32(SP))
	SIFTLOAD(word-56(SP))
	SIFTLOAD(pair-24(SP))
	SIFTLOAD(word-48(SP))
	SIFTLOAD(pair-16(SP))
	SIFTLOAD(word-40(SP))
	SIFTLOAD(pair-8(SP))
	ADDQ         $64, R8
	SUBQ         $8, R15
	JG           words

done:
	MOVQ  words+24(FP), AX
	SUBQ  R15, AX
	MOVQ  AX, done+88(FP)
	MOVQ  BX, k+80(FP)
	VMOVQ X8, last+96(FP)
	VZEROUPPER
	RET

DATA fnv<>+0(SB)/8, $0x1b3               // the lower half of the prime, which is 2⁴⁰ more
DATA fnv<>+8(SB)/8, $0x100000000         // a byte, as left counts
DATA fnv<>+16(SB)/8, $0xcbf29ce484222325 // fnvOffset
DATA fnv<>+24(SB)/8, $0x1e00000000       // wordBytes
GLOBL fnv<>(SB), RODATA|NOPTR, $32

// BYTE is an index of VPSHUFB that takes a byte of each number: of the two in a half, those at i.
#define BYTE(name, i) \
	DATA name<>+0(SB)/8, $(0x8080808080808000+i)  \
	DATA name<>+8(SB)/8, $(0x8080808080808008+i)  \
	DATA name<>+16(SB)/8, $(0x8080808080808000+i) \
	DATA name<>+24(SB)/8, $(0x8080808080808008+i) \
	GLOBL name<>(SB), RODATA|NOPTR, $32

BYTE(byte0, 0)
BYTE(byte1, 1)
BYTE(byte2, 2)
BYTE(byte3, 3)
BYTE(byte4, 4)
BYTE(byte5, 5)
BYTE(byte6, 6)
BYTE(byte7, 7)

// func hashStringsAVX2(index *uint32, text *byte, n int, salts *[4]uint64, bytes *[32]byte, shift uint, table *byte,
//	size int)
//
// The four strings that end at the fifth byte of text, and at the n−1 behind it. It reads 3 bytes behind the last.
TEXT ·hashStringsAVX2(SB), NOSPLIT, $0-64
	MOVQ    index+0(FP), DI
	MOVQ    text+8(FP), SI
	MOVQ    n+16(FP), R15
	MOVQ    salts+24(FP), R8
	MOVQ    bytes+32(FP), R9
	MOVQ    shift+40(FP), CX
	VMOVDQU (R8), Y14
	VMOVDQU (R9), Y15
	VMOVQ   CX, X9
	MOVQ    table+48(FP), R11
	MOVQ    size+56(FP), R12
	FACTORS

strings:
	VPBROADCASTQ (SI), Y0
	VPSHUFB      Y15, Y0, Y0
	HASH
	VEXTRACTI128 $1, Y0, X1
	VSHUFPS      $0x88, X1, X0, X0
	VMOVUPS      X0, (DI)
	MOVL         (DI), AX
	MOVL         4(DI), BX
	MOVL         8(DI), CX
	MOVL         12(DI), DX
	LOAD(AX, R12, R11)
	LOAD(BX, R12, R11)
	LOAD(CX, R12, R11)
	LOAD(DX, R12, R11)
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

// COUNT subtracts a mask from counters of bytes.
#define COUNT(offset, most, counters) \
	VPADDB   offset, Y0, Y1       \
	VPCMPGTB Y1, most, Y1         \
	VPSUBB   Y1, counters, counters

// FIELD adds the sums of counters, at a field's place, to Y0.
#define FIELD(counters, shift) \
	VPSADBW Y15, counters, Y1 \
	VPSLLQ  shift, Y1, Y1     \
	VPADDQ  Y1, Y0, Y0

// func countsAVX2(text *byte, n int) (counts uint64)
//
// n is a multiple of 32, and at most 255 times 32: a counter has a byte.
TEXT ·countsAVX2(SB), NOSPLIT, $0-24
	MOVQ  text+0(FP), SI
	MOVQ  n+8(FP), CX
	EVERY($0x3f, X2, Y2)  // 128 - 'A'
	EVERY($0x1f, X3, Y3)  // 128 - 'a'
	EVERY($0x9a, X4, Y4)  // -128 + 26
	EVERY($0x50, X5, Y5)  // 128 - '0'
	EVERY($0x8a, X6, Y6)  // -128 + 10
	EVERY($0x21, X7, Y7)  // !
	EVERY($0x24, X8, Y8)  // $
	VPXOR Y11, Y11, Y11   // upper case
	VPXOR Y12, Y12, Y12   // lower case
	VPXOR Y13, Y13, Y13   // digits
	VPXOR Y14, Y14, Y14   // signs
	VPXOR Y15, Y15, Y15

counts:
	VMOVDQU  (SI), Y0
	COUNT(Y2, Y4, Y11)
	COUNT(Y3, Y4, Y12)
	COUNT(Y5, Y6, Y13)
	VPCMPEQB Y7, Y0, Y1
	VPSUBB   Y1, Y14, Y14
	VPCMPEQB Y8, Y0, Y1
	VPSUBB   Y1, Y14, Y14
	ADDQ     $32, SI
	SUBQ     $32, CX
	JG       counts

	VPSADBW      Y15, Y11, Y0
	FIELD(Y12, $16)
	FIELD(Y13, $32)
	FIELD(Y14, $48)
	VEXTRACTI128 $1, Y0, X1
	VPADDQ       X1, X0, X0
	VPSRLDQ      $8, X0, X1
	VPADDQ       X1, X0, X0
	VMOVQ        X0, counts+16(FP)
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

// FOLD folds 32 bytes. bits becomes a bit for each byte: 1 for those of no word. A byte is of a word if the classes of
// its upper and of its lower half have a bit in common.
#define FOLD(at, bits) \
	VMOVDQU   at(SI), Y0    \
	VPADDB    Y4, Y0, Y1    \
	VPCMPGTB  Y1, Y6, Y1    \ // A to Z
	VPAND     Y9, Y1, Y1    \
	VPOR      Y1, Y0, Y0    \
	VPSRLW    $4, Y0, Y1    \
	VPAND     Y10, Y1, Y1   \
	VPAND     Y10, Y0, Y2   \
	VPSHUFB   Y1, Y11, Y1   \
	VPSHUFB   Y2, Y12, Y2   \
	VPAND     Y1, Y2, Y2    \
	VPCMPEQB  Y13, Y2, Y2   \
	VPANDN    Y0, Y2, Y0    \
	VMOVDQU   Y0, at(DI)    \
	VPMOVMSKB Y2, bits

// func foldBlocksAVX2(folded *byte, inside *uint64, text *byte, blocks int)
TEXT ·foldBlocksAVX2(SB), NOSPLIT, $0-32
	MOVQ           folded+0(FP), DI
	MOVQ           inside+8(FP), DX
	MOVQ           text+16(FP), SI
	MOVQ           blocks+24(FP), CX
	EVERY($0x3f, X4, Y4)   // 128 - 'A'
	EVERY($0x9a, X6, Y6)   // -128 + 26
	EVERY($0x20, X9, Y9)   // 'a' - 'A'
	EVERY($0x0f, X10, Y10)
	VBROADCASTI128 upper<>(SB), Y11
	VBROADCASTI128 under<>(SB), Y12
	VPXOR          Y13, Y13, Y13

block:
	FOLD(0, AX)
	FOLD(32, BX)
	SHLQ $32, BX
	ORQ  AX, BX
	NOTQ BX
	MOVQ BX, (DX)
	ADDQ $64, SI
	ADDQ $64, DI
	ADDQ $8, DX
	DECQ CX
	JNZ  block
	VZEROUPPER
	RET

// The classes: 1 is $ ' - and . of 2x, 2 the digits of 3x, 4 the @ of 4x, 8 the _ of 5x, 16 a to o of 6x, 32 p to z of
// 7x, 64 all from 80 on. upper has those of each upper half, under those of each lower half.
DATA upper<>+0(SB)/8, $0x2010080402010000
DATA upper<>+8(SB)/8, $0x4040404040404040
GLOBL upper<>(SB), RODATA|NOPTR, $16
DATA under<>+0(SB)/8, $0x7372727372727266
DATA under<>+8(SB)/8, $0x5851515050707272
GLOBL under<>(SB), RODATA|NOPTR, $16
