//go:build !purego

#include "textflag.h"

// func prefetch(table *pair, index *uint32, n, size int)
//
// A feature may lie in two cache lines: its first and its last byte are prefetched.
TEXT ·prefetch(SB), NOSPLIT, $0-32
	MOVQ  table+0(FP), DI
	MOVQ  index+8(FP), SI
	MOVQ  n+16(FP), CX
	MOVQ  size+24(FP), BX
	TESTQ CX, CX
	JLE   done
	CMPQ  BX, $8
	JNE   wide

narrow:
	MOVL       (SI), AX
	PREFETCHT0 (DI)(AX*8) // never faults
	ADDQ       $4, SI
	DECQ       CX
	JNZ        narrow
	RET

wide:
	MOVL       (SI), AX
	IMULQ      BX, AX
	ADDQ       DI, AX
	PREFETCHT0 (AX)
	PREFETCHT0 -1(AX)(BX*1)
	ADDQ       $4, SI
	DECQ       CX
	JNZ        wide

done:
	RET
