package wire

import (
	"bytes"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json/jsontext"
)

// Receipt is the usage that a provider reported. If a provider sends several reports for a call, the last one is
// used.
type Receipt struct {
	Usage Usage
	// Seen is set once a usable report has been read. Final is set once a report has covered the whole answer.
	Seen, Final bool
	// Malformed is set if an impossible report has been read. Such a report is treated as missing.
	Malformed bool
	// Unequal is set if the parts of a report did not add up to its total. The difference is added to the
	// output.
	Unequal bool
}

// report parses one usage report. Providers name the fields differently, so each count has several names.
func (r *Receipt) report(api API, v jsontext.Value, most int64) {
	if v.Kind() == 'n' {
		return
	}
	c := counts{most: most}
	if v.Kind() != '{' {
		c.bad = true
	} else {
		c.read(v)
	}
	if c.bad {
		r.Malformed = true
		return
	}
	if api == Messages {
		r.merge(c)
		return
	}
	if c.in < 0 || c.out < 0 {
		return // the report is incomplete, as in the opening event of some providers
	}
	u := Usage{In: c.in, Cached: max(0, c.cached), Out: c.out}
	if u.Cached > u.In {
		r.Malformed = true
		return
	}
	// A provider that omits reasoning from the parts still includes it in the total.
	if rest := c.total - u.In - u.Out; c.total >= 0 && rest > 0 {
		u.Out, r.Unequal = u.Out+rest, true
	}
	r.Usage, r.Seen, r.Final, r.Malformed = u, true, true, false
}

// merge adds a report of the messages interface. The opening event has the input, and later events have the running
// total of the output. The input excludes cached tokens.
func (r *Receipt) merge(c counts) {
	u := r.Usage
	uncached := u.In - u.Cached - u.CacheWrite
	for _, one := range []struct {
		into *int64
		from int64
	}{{&uncached, c.in}, {&u.Cached, c.cached}, {&u.CacheWrite, c.cacheWrite}, {&u.Out, c.out}} {
		if one.from >= 0 {
			*one.into = one.from
		}
	}
	u.In = uncached + u.Cached + u.CacheWrite
	r.Usage, r.Seen, r.Malformed = u, r.Seen || c.in >= 0, false
}

// counts holds the counts of one report; -1 means missing.
type counts struct {
	in, cached, cacheWrite, out, total int64
	most                               int64
	bad                                bool
}

func (c *counts) read(v jsontext.Value) {
	c.in, c.cached, c.cacheWrite, c.out, c.total = -1, -1, -1, -1, -1
	err := each(v, func(name string, v jsontext.Value) error {
		switch name {
		case "prompt_tokens", "input_tokens":
			c.count(&c.in, v)
		case "completion_tokens", "output_tokens":
			c.count(&c.out, v)
		case "total_tokens":
			c.count(&c.total, v)
		case "prompt_cache_hit_tokens", "cache_read_input_tokens", "cached_tokens":
			c.count(&c.cached, v)
		case "cache_creation_input_tokens":
			c.count(&c.cacheWrite, v)
		case "prompt_tokens_details", "input_tokens_details", "input_token_details":
			c.details(v)
		}
		return nil
	}, lenient...)
	c.bad = c.bad || err != nil
}

func (c *counts) details(v jsontext.Value) {
	switch v.Kind() {
	case 'n':
	case '{':
		err := each(v, func(name string, v jsontext.Value) error {
			if name == "cached_tokens" {
				c.count(&c.cached, v)
			}
			return nil
		}, lenient...)
		c.bad = c.bad || err != nil
	default:
		c.bad = true
	}
}

// count parses a whole number from 0 to most. It treats null as missing.
func (c *counts) count(into *int64, v jsontext.Value) {
	if v.Kind() == 'n' {
		return
	}
	n, err := strconv.ParseInt(string(v), 10, 64)
	if v.Kind() != '0' || err != nil || n < 0 || n > c.most {
		c.bad = true
		return
	}
	*into = n
}

// event holds the relevant members of an answer or of an event in a stream.
type event struct {
	kind    string // type of the event or of the whole answer
	usage   jsontext.Value
	failed  bool
	nothing bool // a chunk without choices, which contains only usage
}

// lenient holds the options for decoding JSON from providers. Like most parsers, it uses the last value of a repeated
// name.
var lenient = []jsontext.Options{jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)}

// readEvent parses a JSON object. It returns false for anything else.
func readEvent(data []byte) (e event, ok bool) {
	v := jsontext.Value(bytes.TrimSpace(data))
	if v.Kind() != '{' || !v.IsValid(lenient...) {
		return e, false
	}
	e.nothing = true
	err := each(v, e.member, lenient...)
	e.failed = (e.failed || e.kind == "error") && !isResponse(e.kind)
	return e, err == nil
}

func (e *event) member(name string, v jsontext.Value) error {
	switch name {
	case "type", "object":
		if kind, ok := stringOf(v); ok {
			e.kind = kind
		}
	case "usage":
		e.setUsage(v)
	case "message", "response":
		if v.Kind() == '{' {
			return each(v, func(name string, v jsontext.Value) error {
				if name == "usage" {
					e.setUsage(v)
				}
				return nil
			}, lenient...)
		}
	case "choices":
		e.nothing = v.Kind() != '[' || len(bytes.TrimSpace(v[1:len(v)-1])) == 0
	case "error":
		e.failed = v.Kind() != 'n'
	}
	return nil
}

func (e *event) setUsage(v jsontext.Value) {
	if v.Kind() != 'n' {
		e.usage = v.Clone()
	}
}

// isResponse reports whether an event or answer is a finished response. Its usage counts even if it failed.
func isResponse(kind string) bool {
	switch kind {
	case "response", "response.completed", "response.incomplete", "response.failed":
		return true
	}
	return false
}

// ErrorMessage returns the message in a provider's error, truncated to 500 bytes, or "" if there is none.
func ErrorMessage(body []byte) string {
	v := jsontext.Value(bytes.TrimSpace(body))
	if v.Kind() != '{' || !v.IsValid(lenient...) {
		return ""
	}
	message := messageIn(v, 4)
	return strings.ToValidUTF8(message[:min(len(message), 500)], "")
}

// errorMembers are the members that may contain an error's message, in order of preference.
var errorMembers = []string{"error", "message", "detail", "msg"}

// messageIn returns the first message in v that is nested at most depth levels deep.
func messageIn(v jsontext.Value, depth int) (message string) {
	if v.Kind() == '"' {
		message, _ = stringOf(v)
		return message
	}
	if depth == 0 || v.Kind() != '{' && v.Kind() != '[' {
		return ""
	}
	best := len(errorMembers)
	_ = each(v, func(name string, v jsontext.Value) error {
		rank := 0 // elements of an array have no name
		if name != "" {
			rank = slices.Index(errorMembers, name)
		}
		if rank < 0 || rank >= best {
			return nil
		}
		if text := messageIn(v, depth-1); text != "" {
			message, best = text, rank
		}
		return nil
	}, lenient...)
	return message
}
