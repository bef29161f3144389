package telemetry

// Limits of names and versions. They accept names that programs use for themselves, and reject text that only a
// generator produces. A credential that a user configured as the name of a client must not be reported.
const (
	maxName        = 40
	maxNameDigits  = 8
	maxNameChanges = 10
	maxVersion     = 48
	maxVersionRun  = 16
)

// Fits reports whether a text is a valid name, version or other value of a kind, so that it may be sent unchanged.
func Fits(kind Kind, s string) bool {
	switch kind {
	case Name:
		return isWord(s) && isName(s)
	case Version:
		return isWord(s) && isVersion(s)
	case Word:
		return isWord(s)
	}
	return false
}

// isName accepts words that begin with a letter and change between letters, digits and cases as rarely as names do. It
// rejects text that looks like a user code.
func isName(s string) bool {
	if len(s) > maxName || !isLetter(s[0]) || isUserCode(s) {
		return false
	}
	digits, changes := 0, 0
	for i := range len(s) {
		switch {
		case s[i] == '/' || s[i] == '@':
			return false
		case isDigit(s[i]):
			digits++
		}
		if i > 0 && kindOf(s[i]) != kindOf(s[i-1]) && kindOf(s[i]) != 0 && kindOf(s[i-1]) != 0 {
			changes++
		}
	}
	return digits <= maxNameDigits && changes <= maxNameChanges
}

// isVersion accepts text that begins with a number, optionally after a v, and whose parts are short enough for dates
// and revisions. It also accepts Other and the two words for a missing version.
func isVersion(s string) bool {
	switch s {
	case Other, "dev", "unknown":
		return true
	}
	first := 0
	if s[0] == 'v' {
		first = 1
	}
	if len(s) > maxVersion || len(s) <= first || !isDigit(s[first]) {
		return false
	}
	run := 0
	for i := range len(s) {
		switch c := s[i]; {
		case kindOf(c) != 0:
			if run++; run > maxVersionRun {
				return false
			}
		case c == '.' || c == '-' || c == '+':
			run = 0
		default:
			return false
		}
	}
	return true
}

// isUserCode reports whether s consists of eight upper-case consonants, with or without a dash in the middle.
func isUserCode(s string) bool {
	letters := 0
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'A' && c <= 'Z' && c != 'A' && c != 'E' && c != 'I' && c != 'O' && c != 'U' && c != 'Y':
			letters++
		case c == '-' && letters == 4 && i == 4:
		default:
			return false
		}
	}
	return letters == 8
}

func isDigit(c byte) bool  { return c >= '0' && c <= '9' }
func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// kindOf returns the kind of a character: a digit, a lower-case or an upper-case letter. It returns 0 for any other
// character.
func kindOf(c byte) int {
	switch {
	case isDigit(c):
		return 1
	case c >= 'a' && c <= 'z':
		return 2
	case c >= 'A' && c <= 'Z':
		return 3
	}
	return 0
}
