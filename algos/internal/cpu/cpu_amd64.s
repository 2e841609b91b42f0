//go:build !purego

#include "textflag.h"

// func supportsAVX2() bool
TEXT ·supportsAVX2(SB), NOSPLIT, $0-1
	MOVB $0, ret+0(FP)
	XORL AX, AX
	XORL CX, CX
	CPUID
	CMPL AX, $7
	JLT  done
	MOVL $1, AX
	XORL CX, CX
	CPUID
	ANDL $0x18800000, CX // OSXSAVE, AVX and POPCNT
	CMPL CX, $0x18800000
	JNE  done
	XORL CX, CX
	XGETBV               // the system saves the registers
	ANDL $6, AX
	CMPL AX, $6
	JNE  done
	MOVL $7, AX
	XORL CX, CX
	CPUID
	ANDL $0x20, BX       // AVX2
	JEQ  done
	MOVB $1, ret+0(FP)

done:
	RET
