package tools

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"image/png"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sync"

	"github.com/service-dev/service/internal/problem"
)

// MaxAnswer is the maximum size of an answer to an agent, in bytes as encoded by MCP. It includes the text, the
// structured content and the pictures.
const MaxAnswer = 1_000_000

// Shares of MaxAnswer. The rest is for the message around the answer, the notice and the note about omissions.
const (
	maxContent = MaxAnswer - 20_000
	maxRows    = maxContent - 20_000 // the rows of an event log
	// maxText is the size up to which text has precedence over pictures.
	maxText = maxContent / 2
)

// dataFields matches the fields of a JSON answer that contain long base64, such as pictures in trees and frames. Base64
// needs no escapes, and quotes within strings are escaped, so the expression cannot match other text.
var dataFields = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`"data":"([A-Za-z0-9+/]{100,}={0,2})"`)
})

// withoutData replaces long base64 in the data fields of compact JSON with its type, size and hash, because an agent
// cannot use the bytes.
func withoutData(answer []byte) []byte {
	if !bytes.Contains(answer, []byte(`"data":"`)) {
		return answer
	}
	return dataFields().ReplaceAllFunc(answer, func(field []byte) []byte {
		text := field[len(`"data":"`) : len(field)-1]
		data := make([]byte, base64.StdEncoding.DecodedLen(len(text)))
		n, err := base64.StdEncoding.Decode(data, text)
		if err != nil {
			n, err = base64.RawStdEncoding.Decode(data, text)
		}
		if err != nil {
			return field
		}
		return fmt.Appendf(nil, `"data":"%s, %d bytes, sha256 %x"`, http.DetectContentType(data[:n]), n,
			sha256.Sum256(data[:n]))
	})
}

// encodedSize returns the size of an answer's JSON in MCP, in bytes. MCP contains the JSON twice: as structured
// content, and as text for clients that do not read structured content.
func encodedSize(answer []byte) int {
	text, _ := json.Marshal(string(answer)) // strings can always be encoded
	return len(answer) + len(text)
}

// Bounded returns a result of at most MaxAnswer bytes. It keeps only one of several equal pictures. If that is not
// enough, it converts pictures to JPEG, then omits the first pictures, then the ends of long lists and texts. The
// answer then contains more: true, and its summary reports the omissions. Hashes in the answer are still hashes of the
// PNGs.
func (r Result) Bounded() Result {
	var distinct []Image
	for _, image := range r.Images {
		if !slices.ContainsFunc(distinct, func(other Image) bool { return bytes.Equal(other.Data, image.Data) }) {
			distinct = append(distinct, image)
		}
	}
	r.Images = distinct
	left := maxContent - min(encodedSize(r.Structured), maxText)
	pictures := r.Images
	for _, quality := range []int{90, 60, 30} {
		if r.picturesSize() > left {
			r.Images = compressed(pictures, quality)
		}
	}
	dropped := 0
	for r.picturesSize() > left {
		dropped++
		r.Images = r.Images[1:]
	}
	if dropped > 0 {
		r = r.shortened(unlimited, fmt.Sprintf("%d pictures were left out, because the answer would be too long.", dropped))
	}
	const fewest = 8
	most := maxContent - r.picturesSize()
	for limit := 1 << 16; encodedSize(r.Structured) > most && limit >= fewest; limit /= 2 {
		r = r.shortened(limit, "Long lists and texts were cut, because the answer would be too long.")
	}
	if encodedSize(r.Structured) > most {
		return failure(&problem.Error{Code: problem.CodeInternal, Message: "the answer would be too long",
			FixHint: "Ask for less: a smaller limit, or fewer steps or models."})
	}
	return r
}

func (r *Result) picturesSize() (size int) {
	for _, image := range r.Images {
		size += base64.StdEncoding.EncodedLen(len(image.Data)) + len(image.MIME) + len(`{"type":"image","mimeType":"","data":""},`)
	}
	return size
}

// compressed returns pictures, replacing PNGs with JPEGs where they are smaller.
func compressed(pictures []Image, quality int) []Image {
	pictures = slices.Clone(pictures)
	for i, image := range pictures {
		picture, err := png.Decode(bytes.NewReader(image.Data))
		if err != nil {
			continue
		}
		var smaller bytes.Buffer
		if err := jpeg.Encode(&smaller, picture, &jpeg.Options{Quality: quality}); err == nil &&
			smaller.Len() < len(image.Data) {
			pictures[i] = Image{MIME: "image/jpeg", Data: smaller.Bytes()}
		}
	}
	return pictures
}

const unlimited = math.MaxInt / 16

// shortened returns the result with lists of at most limit entries and texts of at most 16 times as many bytes. It adds
// why to the summary.
func (r Result) shortened(limit int, why string) Result {
	var fields map[string]any
	d := json.NewDecoder(bytes.NewReader(r.Structured))
	d.UseNumber()
	if d.Decode(&fields) != nil {
		return r
	}
	for name, value := range fields {
		fields[name] = shortenedValue(value, limit)
	}
	fields["more"] = true
	if summary, _ := fields["summary"].(string); !bytes.Contains([]byte(summary), []byte(why)) {
		fields["summary"] = summary + " " + why
	}
	data, err := json.Marshal(fields)
	if err != nil {
		return r
	}
	r.Structured, r.Text = data, string(data)
	return r
}

func shortenedValue(value any, limit int) any {
	switch v := value.(type) {
	case string:
		return cut(v, 16*limit)
	case []any:
		v = v[:min(len(v), limit)]
		for i := range v {
			v[i] = shortenedValue(v[i], limit)
		}
		return v
	case map[string]any:
		for name := range v {
			v[name] = shortenedValue(v[name], limit)
		}
	}
	return value
}
