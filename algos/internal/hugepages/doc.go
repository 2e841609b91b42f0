// Package hugepages is advice to the kernel about large tables that are read at random
// places. With pages of 4 kB each place costs a walk through the page tables.
package hugepages
