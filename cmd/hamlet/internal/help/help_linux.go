package help

import "os"

// init ends the program if it was asked for a help that is kept. In all other cases kong answers.
func init() {
	if !Plain() {
		return
	}
	text, ok := of(os.Args[1:])
	if !ok {
		return
	}
	if _, err := os.Stdout.WriteString(text); err == nil {
		os.Exit(0)
	}
}

// Plain reports whether the program was started as hamlet, in an environment without settings. Then what it says about
// itself depends on nothing else.
func Plain() bool {
	return len(os.Args) > 0 && isHamlet(os.Args[0]) && !configured(os.Environ())
}

// isHamlet reports whether the program was started as hamlet, not as one of the services. A test is neither.
func isHamlet(path string) bool {
	const name = "hamlet"
	at := len(path) - len(name)
	return at >= 0 && path[at:] == name && (at == 0 || path[at-1] == '/')
}

// configured reports whether the environment has settings. One that is wrong is an error, even of --help.
func configured(environment []string) bool {
	for _, variable := range environment {
		for _, prefix := range []string{"HAMLET_", "COLUMNS="} {
			if len(variable) >= len(prefix) && variable[:len(prefix)] == prefix {
				return true
			}
		}
	}
	return false
}
