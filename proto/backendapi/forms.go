package backendapi

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/service-dev/service/internal/loopback"
)

// maxKey is the maximum length of a key of a map in bytes.
const maxKey = 64

// form reports whether a text is valid for a field. most is the maximum length from the field's tag. Texts for users
// are measured in characters, and other texts in bytes.
type form func(text string, most int) bool

// forms maps the names that tags use to forms.
var forms = map[string]form{
	"token":    isToken,
	"visible":  isVisible,
	"ascii":    isPrintableASCII,
	"name":     IsName,
	"usercode": func(text string, _ int) bool { return userCodeForm().MatchString(text) },
	"time":     isTimestamp,
	"line":     isLine,
	"prose":    isProse,
	// URLs. Secrets are sent to pages and sockets, so their URLs must be encrypted unless the host is this machine.
	"page":    encrypted(loopback.IsBrowserHost, "http", "https"),
	"socket":  encrypted(loopback.IsHost, "ws", "wss"),
	"url":     address("http", "https"),
	"contact": address("http", "https", "mailto"),
}

var (
	tokenForm    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9._~+/-]+=*$`) })
	userCodeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Z0-9]{4}-[A-Z0-9]{4}$`) })
)

// isToken accepts a bearer token of RFC 6750, which is valid in a header.
func isToken(text string, most int) bool { return len(text) <= most && tokenForm().MatchString(text) }

// isVisible accepts printable ASCII without spaces.
func isVisible(text string, most int) bool {
	return len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' })
}

// isPrintableASCII accepts printable ASCII with spaces.
func isPrintableASCII(text string, most int) bool {
	return len(text) <= most && !strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' })
}

// isTimestamp accepts RFC 3339.
func isTimestamp(text string, _ int) bool {
	_, err := time.Parse(time.RFC3339Nano, text)
	return err == nil && len(text) <= 40
}

// isLine accepts one line of text for users.
func isLine(text string, most int) bool {
	return utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, isUnsafe)
}

// isProse accepts multi-line text.
func isProse(text string, most int) bool {
	return utf8.RuneCountInString(text) <= most && !strings.ContainsFunc(text, func(r rune) bool {
		return r != '\n' && r != '\t' && r != '\r' && isUnsafe(r)
	})
}

// isUnsafe reports whether r is a control character, or a character that hides text or changes its order. Joiners and
// other marks of writing systems are safe.
func isUnsafe(r rune) bool {
	switch {
	case unicode.IsControl(r), r == '\u2028', r == '\u2029':
		return true
	// Bidirectional embeddings, overrides and isolates.
	case r >= '\u202a' && r <= '\u202e', r >= '\u2066' && r <= '\u2069':
		return true
	}
	return r >= 0xe0000 && r <= 0xe007f // invisible tag characters
}

// encrypted accepts an absolute URL with one of the given schemes. Schemes without encryption are accepted only if
// isOwn reports that the host is this machine.
func encrypted(isOwn func(host string) bool, schemes ...string) form {
	fits := address(schemes...)
	return func(text string, most int) bool {
		u, err := url.Parse(text)
		return err == nil && fits(text, most) && (u.Scheme == "https" || u.Scheme == "wss" || isOwn(u.Hostname()))
	}
}

// address accepts an absolute URL with one of the given schemes.
func address(schemes ...string) form {
	const most = 2048 // bytes
	return func(text string, _ int) bool {
		u, err := url.Parse(text)
		if err != nil || !isVisible(text, most) || u.User != nil {
			return false
		}
		return slices.Contains(schemes, u.Scheme) && (u.Scheme == "mailto" || u.Host != "")
	}
}
