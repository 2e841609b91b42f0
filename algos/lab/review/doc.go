// Package review says what the label of a body would teach a model, before it is known, for
// experiments on which bodies people should label. The product's own measure is in
// cmd/internal/operate/review.
package review
