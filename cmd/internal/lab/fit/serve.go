package fit

import (
	"context"
	"io"

	"hamlet/cmd/internal/show/jsonlines"
)

// Serve answers the requests of r on w: see [jsonlines.Serve].
func Serve(ctx context.Context, r io.Reader, w io.Writer) error {
	return jsonlines.Serve(ctx, r, w, answer)
}
