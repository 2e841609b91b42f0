// Package codec writes and reads the bytes of models: little-endian integers and
// floats, strings and nested parts behind their lengths. The layout of a whole model is in
// algos/model, bytes.go.
//
// A [Writer] and a [Reader] keep their first error, so that code lists a layout's fields
// and checks the error at the end:
//
//	w := codec.NewWriter(dst)
//	w.Header("hvib", 1)
//	w.Uint32(uint32(len(e.terms)))
//	w.Float64(e.terms...)
//	return w.Finish()
//
//	r := codec.NewReader(b, ErrFormat)
//	r.Header("hvib", 1)
//	terms := r.Finites(uint64(r.Uint32()))
//	if err := r.Close(); err != nil {
//		return err
//	}
//
// # Rules
//
//   - After an error a Reader's methods return zero values. A loop over a number
//     that was read must stop then; [Reader.Fits] bounds such a number first.
//   - A Reader never allocates more than the bytes that are left can fill.
//   - The type that has a layout documents it. A changed layout is a new version.
package codec
