// Package browser tests the web console in a real Chromium. It has no code but tests.
//
// A test builds hamlet, and starts `hamlet up --console` on SpamAssassin's mail, where one
// source gives wrong labels. Then it does what a user does, and looks at every page. A test
// fails on an error in the browser's console, on a violation of the Content-Security-Policy,
// on a dialog, on a request that fails, and on one that leaves the console. axe-core looks
// for what hinders people with a screen reader, a keyboard, or weak eyes.
//
//	apt-get install --no-install-recommends chromium npm
//	.ci/programs DIR axe-core
//	HAMLET_TEST_PROGRAMS=DIR go test ./cmd/internal/testkit/browser
//
// With HAMLET_SCREENSHOTS=DIR the tests leave a picture of every page in DIR, at two widths
// and in both colour schemes.
package browser
