package wire

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/service-dev/service/internal/problem"
)

// checkText refuses text that two parsers could read differently: repeated names, invalid UTF-8, and numbers outside
// the range of a float64. It also limits the nesting depth.
func checkText(body []byte) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	for ended := false; ; ended = d.StackDepth() == 0 {
		token, err := d.ReadToken()
		switch {
		case errors.Is(err, io.EOF) && ended:
			return nil
		case errors.Is(err, jsontext.ErrDuplicateName):
			return malformed(d, err, "the body repeats a name within an object")
		case err != nil:
			return malformed(d, err, "the body is not one valid JSON object")
		case d.StackDepth() > maxDepth:
			return malformed(d, nil, fmt.Sprintf("the body is nested deeper than %d levels", maxDepth))
		case ended || d.StackDepth() == 0 && token.Kind() != '}':
			return malformed(d, nil, "the body is not one JSON object")
		case token.Kind() == '0' && !isNumber(token.String()):
			return malformed(d, nil, "the body has a number out of range")
		}
	}
}

// maxPath is the maximum length of a field's path in an error, in bytes.
const maxPath = 100

// malformed returns an error with the position of the invalid text, or the position that the decoder has reached.
func malformed(d *jsontext.Decoder, err error, what string) error {
	at, field := d.InputOffset(), d.StackPointer()
	var syntax *jsontext.SyntacticError
	if errors.As(err, &syntax) {
		at, field = syntax.ByteOffset, syntax.JSONPointer
	}
	var path string
	for token := range field.Tokens() {
		switch _, err := strconv.Atoi(token); {
		case err == nil:
			path += "[" + token + "]"
		case path == "":
			path = token
		default:
			path += "." + token
		}
	}
	path = path[:min(len(path), maxPath)]
	if path != "" {
		what += ", in " + path
	}
	return &FieldError{problem.CodeInvalidJSON, path, fmt.Sprintf("%s, near byte %d", what, at)}
}

func isNumber(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	return err == nil && len(text) <= maxNumber && !math.IsInf(f, 0)
}
