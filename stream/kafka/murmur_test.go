package kafka

import "testing"

// Reference: org.apache.kafka.common.utils.UtilsTest.testMurmur2; the partition is
// the hash without its sign, modulo their number.
func TestPartitionOf(t *testing.T) {
	for key, hash := range map[string]int32{
		"21": -973932308, "foobar": -790332482, "a-little-bit-long-string": -985981536,
	} {
		for _, n := range []int{1, 4, 7, 100} {
			if got, want := PartitionOf([]byte(key), n), int(hash&0x7fffffff)%n; got != want {
				t.Errorf("%q of %d partitions: %d, want %d", key, n, got, want)
			}
		}
	}
}
