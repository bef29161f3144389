package stdioproxy

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// nameOf unquotes a name. It does not copy names without escapes.
func nameOf(raw []byte) []byte {
	for _, c := range raw {
		if c == '\\' {
			text := unquote(raw)
			return []byte(text)
		}
	}
	return raw[1 : len(raw)-1]
}

// unquote decodes a scanned JSON string, or returns "" if raw is not a string. As in encoding/json, unpaired
// surrogates and invalid UTF-8 become U+FFFD.
func unquote(raw []byte) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	raw = raw[1 : len(raw)-1]
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' {
			r, n := utf8.DecodeRune(raw[i:])
			out = utf8.AppendRune(out, r)
			i += n
			continue
		}
		i++
		switch c := raw[i]; c {
		case 'u':
			r, n := unescapeRune(raw[i-1:])
			out = utf8.AppendRune(out, r)
			i += n - 1
		default:
			out = append(out, simpleEscape(c))
			i++
		}
	}
	return string(out)
}

func simpleEscape(c byte) byte {
	if i := strings.IndexByte("bfnrt", c); i >= 0 {
		return "\b\f\n\r\t"[i]
	}
	return c
}

// unescapeRune decodes \uXXXX or a surrogate pair. It returns the rune and the number of bytes read.
func unescapeRune(raw []byte) (rune, int) {
	r := hex4(raw[2:])
	if r < 0xd800 || r > 0xdfff {
		return r, 6
	}
	if r < 0xdc00 && len(raw) >= 12 && raw[6] == '\\' && raw[7] == 'u' {
		if low := hex4(raw[8:]); low >= 0xdc00 && low <= 0xdfff {
			return (r-0xd800)<<10 | (low - 0xdc00) + 0x10000, 12
		}
	}
	return utf8.RuneError, 6
}

func hex4(b []byte) rune {
	var r rune
	for _, c := range b[:4] {
		r = r<<4 | rune(hexDigit(c))
	}
	return r
}

// quote returns s as a JSON string.
func quote(s string) string {
	out := make([]byte, 0, len(s)+2)
	out = append(out, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			out = append(out, '\\', byte(r))
		case r == '\n':
			out = append(out, '\\', 'n')
		case r < 0x20 || r == 0x2028 || r == 0x2029:
			hex := strconv.FormatInt(int64(r), 16)
			out = append(out, `\u0000`[:6-len(hex)]...)
			out = append(out, hex...)
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return string(append(out, '"'))
}
