// Package detect holds detectors of change from the literature, to compare the alarms
// of package drift with: [DDM] watches a rate of errors, [ADWIN] the mean of any numbers
// from 0 to 1. Both take one number at a time and are no part of a model.
//
//	d, err := detect.NewDDM(detect.DDMConfig{})
//	if err != nil {
//		return err
//	}
//	changed := d.Observe(wrong) == detect.OutOfControl
package detect

import "fmt"

const most = 1 << 30 // bounds every count in a configuration

// check returns an error unless a field is from low to high.
func check[T int | float64](what string, v, low, high T) error {
	if !(v >= low && v <= high) {
		return fmt.Errorf("detect: %s is %v: want %v to %v", what, v, low, high)
	}
	return nil
}
