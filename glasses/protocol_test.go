package glasses_test

import (
	"bufio"
	"os"
	"strings"
	"testing"

	"github.com/service-dev/service/glasses"
)

// TestProtocolExamples parses every frame in PROTOCOL.md as its receiver would.
func TestProtocolExamples(t *testing.T) {
	data, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	read := map[string]int{}
	from := ""
	for scan := bufio.NewScanner(strings.NewReader(string(data))); scan.Scan(); {
		line := scan.Text()
		switch {
		case strings.HasPrefix(line, "```json "):
			from = strings.TrimPrefix(line, "```json ")
		case line == "```":
			from = ""
		case from != "":
			read[from]++
			checkExample(t, from, line)
		}
	}
	for _, from := range []string{"app", "glasses", "service", "control", "binary"} {
		if read[from] == 0 {
			t.Errorf("PROTOCOL.md has no example of a frame from %s", from)
		}
	}
}

func checkExample(t *testing.T, from, line string) {
	t.Helper()
	f, err := glasses.Parse([]byte(line))
	if err != nil {
		t.Errorf("%s: %v", line, err)
		return
	}
	switch {
	case f.Type == glasses.TypeHello:
		_, _, err = glasses.ParseHello([]byte(line))
	case glasses.IsCommand(f.Type):
		_, err = glasses.ParseCommand(f.Type, f.Payload)
	case glasses.IsControl(f.Type):
		_, err = glasses.ParseControl(f.Type, f.Payload)
	case f.Type == glasses.TypeResult:
		_, err = glasses.ParseResult(f.Payload)
	}
	if err != nil {
		t.Errorf("%s: %v", line, err)
	}
	switch from {
	case "app":
		if refusal := glasses.MaySend(glasses.SenderApp, f.Type); refusal != nil && f.Type != glasses.TypeHello {
			t.Errorf("%s: %v", line, refusal)
		}
	case "glasses", "binary":
		if refusal := glasses.MaySend(glasses.SenderGlasses, f.Type); refusal != nil {
			t.Errorf("%s: %v", line, refusal)
		}
	case "control":
		if !glasses.IsControl(f.Type) {
			t.Errorf("%s is not a control frame", line)
		}
	}
}

// TestProtocolNamesEverything checks that the document mentions every frame type, error code and model field in the
// code.
func TestProtocolNamesEverything(t *testing.T) {
	data, err := os.ReadFile("PROTOCOL.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(data)
	var words []string
	for _, c := range glasses.Commands() {
		words = append(words, c.Type)
	}
	words = append(words, glasses.CommandCodes()...)
	words = append(words, glasses.InputKinds()...)
	words = append(words, glasses.Sounds()...)
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("PROTOCOL.md does not mention %s", w)
		}
	}
}
