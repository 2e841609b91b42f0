// Package mail turns a raw message into what a model learns of it, under
// limits and without ever losing a message, and reduces messages before they
// travel.
package mail
