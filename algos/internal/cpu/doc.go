// Package cpu says which instructions the processor has.
package cpu
