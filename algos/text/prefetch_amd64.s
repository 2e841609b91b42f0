//go:build !purego

#include "textflag.h"

// func prefetchWeights(table *weight, index *uint32, n int)
TEXT ·prefetchWeights(SB), NOSPLIT, $0-24
	MOVQ  table+0(FP), DI
	MOVQ  index+8(FP), SI
	MOVQ  n+16(FP), CX
	TESTQ CX, CX
	JLE   done

loop:
	MOVL       (SI), AX
	PREFETCHT0 (DI)(AX*8) // never faults
	ADDQ       $4, SI
	DECQ       CX
	JNZ        loop

done:
	RET

// func prefetchCounts(table *count, index *uint32, n int)
TEXT ·prefetchCounts(SB), NOSPLIT, $0-24
	JMP ·prefetchWeights(SB)
