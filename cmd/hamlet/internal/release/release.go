// Package release answers `hamlet --version` before those packages are initialized that need package net. It imports
// none that does. See package help, which is earlier still.
package release
