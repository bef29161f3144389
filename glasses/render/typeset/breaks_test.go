package typeset_test

import (
	"strings"
	"testing"

	"github.com/service-dev/service/glasses/render/typeset"
)

func TestDivisions_AreBetweenWhatAReaderSeesAsCharacters(t *testing.T) {
	for _, marked := range []string{"|a|b", "|e\u0301|x", "|日|本", "|क्ष|त्रि|य", "|நி|யா|ய", "|👩‍👩‍👧|🇮🇸|🇩🇪",
		"|ที่|น้ำ", "|อิ|ส|ระ|และ", "|เห|ตุ|ผ|ล", "|ไท|ยๆ", "|ศั|ก|ดิ์|ศ|รี", "|\u1100\u1161\u11a8|\u1100"} {
		text := []rune(strings.ReplaceAll(marked, "|", ""))
		var got strings.Builder
		for i, may := range typeset.Divisions(text) {
			if may {
				got.WriteByte('|')
			}
			got.WriteRune(text[i])
		}
		if got.String() != marked {
			t.Errorf("%q, want %q", got.String(), marked)
		}
	}
}
